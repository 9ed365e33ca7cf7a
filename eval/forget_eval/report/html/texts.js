"use strict";
// Texts of others are data: they reach the page through textContent alone, and what cannot be seen is spelled out.

const SHOWN = 600; // characters of a text that are shown before a button is pressed
const IGNORABLE = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/u;
const EMOJI = /[\p{Extended_Pictographic}\ufe0f]/u;
const WORDY = /[\p{L}\p{N}\p{M}]/u;

/** An element with properties and children; a child that is a string becomes text. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A text as it is compared: lower case, without what nobody sees; `at` leads back to the original. */
function folded(text) {
  let plain = "";
  const at = [];
  let i = 0;
  for (const character of text) {
    if (!IGNORABLE.test(character)) {
      const lowered = character.toLowerCase();
      plain += lowered;
      for (let j = 0; j < lowered.length; j += 1) at.push(i);
    }
    i += character.length;
  }
  at.push(text.length);
  return { plain, at };
}

/** Where the needles stand, as [start, end, kind], sorted and apart from each other. Those named first win. */
function ranges(text, needles) {
  const { plain, at } = folded(text);
  const found = [];
  for (const { text: needle, kind, whole } of needles) {
    const sought = folded(needle).plain;
    if (!sought) continue;
    for (let from = plain.indexOf(sought); from >= 0; from = plain.indexOf(sought, from + 1)) {
      const to = from + sought.length;
      const touched = whole && (WORDY.test(plain[from - 1] ?? "") || WORDY.test(plain[to] ?? ""));
      const [start, end] = [at[from], at[to]];
      if (!touched && !found.some((other) => other[0] < end && start < other[1])) found.push([start, end, kind]);
    }
  }
  return found.sort((a, b) => a[0] - b[0]);
}

/** A piece of text as nodes, with every sign that cannot be seen spelled out. */
function visible(text) {
  const nodes = [];
  let run = "";
  let before = "";
  for (const character of text) {
    const joins = character === "\u200d" && EMOJI.test(before);
    if (UNSEEN.test(character) && !joins) {
      if (run) nodes.push(run);
      run = "";
      const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      nodes.push(make("span", { className: "sight", title: "a sign that cannot be seen" }, `U+${code}`));
    } else {
      run += character;
    }
    before = character;
  }
  return run ? [...nodes, run] : nodes;
}

/** One stored piece with its marks; a long one is cut behind its first mark, with a button for the rest. */
function piece(text, needles) {
  const marked = ranges(text, needles);
  const cut = Math.max(SHOWN, marked.length ? marked[0][1] + 100 : 0);
  const holder = make("span", {});
  const fill = (end) => {
    const nodes = [];
    let at = 0;
    for (const [start, stop, kind] of marked) {
      if (start >= end) break;
      nodes.push(...visible(text.slice(at, start)), make("mark", { className: kind }, visible(text.slice(start, stop))));
      at = stop;
    }
    holder.replaceChildren(...nodes, ...visible(text.slice(at, Math.max(at, end))));
  };
  if (text.length <= cut + 100) {
    fill(text.length);
    return [holder];
  }
  fill(cut);
  const button = make("button", { type: "button", className: "cut" }, `Show ${number(text.length - cut)} more characters`);
  button.addEventListener("click", () => { fill(text.length); button.remove(); holder.tabIndex = -1; holder.focus(); });
  return [holder, " ", button];
}

/** A text of the table, marked, in its own direction. */
function held(entry, needles = []) {
  if (typeof entry === "string") return make("span", { className: "held", dir: "auto" }, piece(entry, needles));
  const nodes = [];
  let at = 0;
  for (const [start, text] of entry.parts) {
    if (start > at) nodes.push(gap(start - at));
    nodes.push(...piece(text, needles));
    at = start + [...text].length;
  }
  if (entry.length > at) nodes.push(gap(entry.length - at));
  return make("span", { className: "held", dir: "auto" }, nodes);
}

function gap(n) {
  return make("span", { className: "aside" }, ` […${number(n)} characters that this page does not hold…] `);
}

function number(n) {
  return n.toLocaleString("en");
}

function milliseconds(seconds) {
  return typeof seconds === "number" ? ` · ${(1000 * seconds).toPrecision(3)} ms` : "";
}
