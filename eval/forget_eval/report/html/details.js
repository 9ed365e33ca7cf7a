"use strict";
// What a failure opens to: a ForgetEval case or an item of MemBehave, and what one system answered.

const KINDS = {
  final: "Final question", survivor: "Survivor", leak: "Leak probe",
  target: "Target", ripple: "Ripple", control: "Control", confirm: "Confirm", alias: "Alias",
};

const RUN = 8; // distractors in a row that are shown at once

function block(title, ...children) {
  return make("div", {}, make("h4", {}, title), ...children);
}

function needles(texts, indexes, kind, whole = false) {
  return indexes.map((i) => ({ text: full(texts[i]), kind, whole }));
}

function full(entry) {
  return typeof entry === "string" ? entry : entry.parts[0][1];
}

function openCase(data, one, record) {
  const { texts } = data;
  const marks = [
    ...one.asked.flatMap(([, , , forbid]) => needles(texts, forbid, "bad")),
    ...one.asked.flatMap(([, , need]) => needles(texts, need, "good")),
  ];
  const facts = inRuns(one.facts.map((i, n) => {
    const element = held(texts[i], marks);
    return make("li", { value: n + 1, className: element.querySelector("mark") ? "" : "aside" }, element);
  }));
  const legend = make("p", { className: "aside legend" }, make("mark", { className: "bad" }, "must go"), " · ",
    make("mark", { className: "good" }, "must stay"), " · grey: distractors");
  return make("div", { className: "body" },
    failing(record, texts),
    block("Facts, in the order told", make("ol", {}, facts), legend),
    block("Then", make("ol", {}, one.mutations.map(([op, words], i) => mutation(texts, op, words, record.operations?.[i], marks)))),
    block("Asked", questions(texts, one, record)),
    elsewhere(data, one, record));
}

/** The facts with every long run of distractors behind a disclosure. */
function inRuns(facts) {
  const found = [];
  for (let i = 0; i < facts.length;) {
    let end = i;
    while (end < facts.length && facts[end].className) end += 1;
    const run = facts.slice(i, Math.max(end, i + 1));
    if (run.length <= RUN) found.push(...run);
    else found.push(make("li", { className: "run" }, make("details", {}, make("summary", { className: "aside" }, `${run.length} distractors`), make("ol", {}, run))));
    i += run.length;
  }
  return found;
}

function mutation(texts, op, [query, text], done, marks) {
  const told = done ? [`${done[1] === "ok" ? "returned" : done[1]} `, done[1] === "ok" ? held(texts[done[2]]) : "", milliseconds(done[3])]
    : ["not reached"];
  return make("li", {}, make("span", { className: "op" }, op), " ", held(texts[query], marks),
    text === undefined ? "" : make("span", {}, " → ", held(texts[text], marks)),
    make("div", { className: "aside" }, told));
}

function questions(texts, one, record) {
  const seen = new Set();
  const rows = (record.answers ?? []).map(([i, wrong, recalled]) => {
    const again = seen.has(i);
    seen.add(i);
    return question(texts, one.asked[i], again, wrong, recalled);
  });
  const missing = one.asked.filter((_, i) => !seen.has(i)).map(([kind, query]) =>
    make("div", { className: "asked" }, `${KINDS[kind]}: `, held(texts[query]), make("span", { className: "aside" }, " – not answered")));
  return [...rows, ...missing];
}

function question(texts, [kind, query, need, forbid], again, wrong, recalled) {
  const marks = [...needles(texts, forbid, "bad"), ...needles(texts, need, "good")];
  const list = recalled.length ? make("ol", {}, recalled.map((i) => make("li", {}, held(texts[i], marks))))
    : make("p", { className: "aside" }, "Nothing was recalled.");
  const split = wrong.includes("stale") && !list.querySelector(".bad")
    ? make("p", {}, "The forbidden string shows only once the recalled texts are joined or composed.") : null;
  return make("details", { className: wrong.length ? "asked wrong" : "asked", open: wrong.length > 0 },
    make("summary", {}, make("span", { className: "mark" }, wrong.length ? "✗" : "✓"),
      `${KINDS[kind]}${again ? ", asked again" : ""}: `, held(texts[query])),
    make("div", { className: "inside" },
      wanted("Required", need, texts, wrong.includes("lost") ? "missing" : "there"),
      wanted("Must not come back", forbid, texts, wrong.includes("stale") ? "came back" : "did not"),
      make("div", {}, make("span", { className: "aside" }, `Recalled, ${recalled.length}:`), list, split)));
}

function wanted(title, indexes, texts, outcome) {
  if (!indexes.length) return null;
  return make("div", {}, make("span", { className: "aside" }, `${title}: `),
    indexes.map((i, n) => [n ? ", " : "", held(texts[i])]).flat(), make("span", { className: "aside" }, ` (${outcome})`));
}

function failing(record, texts) {
  if (!record.error) return null;
  const [first, traceback] = record.error.map((i) => held(texts[i]));
  return block("Broke", first, make("pre", {}, traceback));
}

function elsewhere(data, one, record) {
  const others = data.systems.map((name, i) => [name, one.ended[i]]).filter((_, i) => i !== record.system);
  if (!others.length) return null;
  return block("Elsewhere", make("ul", {}, others.map(([name, ended]) => make("li", {}, make("bdi", {}, name), `: ${ended}`))));
}

function openItem(data, one, record) {
  const { texts } = data;
  const rows = (record.answers ?? []).map((answer) => probe(texts, one, answer));
  const done = record.operations?.[0];
  return make("div", { className: "body" },
    failing(record, texts),
    block("Request", held(texts[one.request]),
      make("div", { className: "aside" }, `${one.level} entanglement, ${one.shared} shared; names: `,
        one.names.map((i, n) => [n ? ", " : "", held(texts[i])]).flat()),
      done ? make("div", { className: "aside" }, `forget: ${done[1]}; `, held(texts[done[2]]), milliseconds(done[3])) : null),
    block("Asked before and after", rows.length ? rows : make("p", { className: "aside" }, "Nothing was answered.")),
    elsewhere(data, one, record));
}

function probe(texts, one, [i, wrong, before, after, was, now]) {
  const [kind, query, expected, sought] = one.asked[i];
  const keeps = kind === "ripple" || kind === "control";
  const people = needles(texts, one.names, "good", true);
  const marks = (kindOf) => [...needles(texts, sought, kindOf, true), ...(keeps ? [] : people)];
  return make("details", { className: wrong.length ? "asked wrong" : "asked", open: wrong.length > 0 },
    make("summary", {}, make("span", { className: "mark" }, wrong.length ? "✗" : "✓"),
      `${KINDS[kind]}: `, held(texts[query]), wrong.length ? make("span", { className: "aside" }, ` ${wrong.join(", ")}`) : ""),
    make("div", { className: "inside" },
      make("div", {}, make("span", { className: "aside" }, keeps ? "Must survive: " : "Must go: "),
        expected.map((n, at) => [at ? ", " : "", held(texts[n])]).flat()),
      make("div", { className: "sides" },
        side("Before", texts, before, was, marks(keeps ? "good" : "bad")),
        side("After", texts, after, now, marks(keeps ? "good" : "bad")))));
}

function side(title, texts, lines, given, marks) {
  const found = lines === null ? make("p", { className: "aside" }, "not answered")
    : lines.length ? make("ul", {}, lines.map((i) => make("li", {},
      i < 0 ? make("span", { className: "aside" }, `${number(-i)} more without a mark`) : held(texts[i], marks))))
      : make("p", { className: "aside" }, "nothing");
  return make("div", {}, make("h4", {}, title, `: ${given.length ? "" : "none of it"}`, given.length ? held(given.join(", ")) : ""), found);
}
