"use strict";
// The list of failures: filtered and sorted as a whole in memory, drawn a page at a time, opened when asked for.

const PAGE = 50;
const SIGNS = {
  stale: "●", lost: "○", leak: "◆", collateral: "▲", resurfaced: "↺", confirmed: "■", "alias leak": "◇",
  "n/a": "–", error: "!", unscored: "…",
};
const SYSTEMS_ALONE = "\u0000"; // a choice that no system can be called like

class Explorer {
  constructor(root, data) {
    this.data = data;
    this.root = root;
    this.records = data.records.map((record, i) => ({ ...record, i, one: data.cases[record.case] }));
    const kind = (r) => (data.controls.includes(r.system) ? [] : [SYSTEMS_ALONE]);
    this.values = { system: (r) => [data.systems[r.system], ...kind(r)], reason: (r) => r.reasons };
    for (const facet of data.facets) this.values[facet] = (r) => r.one[facet];
    this.filters = {};
    this.build();
    this.refresh();
  }

  build() {
    this.search = make("input", { type: "search", autocomplete: "off", spellcheck: false });
    this.search.addEventListener("input", () => this.refresh());
    const names = new Map([["", "all"], [SYSTEMS_ALONE, "all but controls"]]);
    const fields = [make("label", { className: "wide" }, "text in facts, questions and answers", this.search)];
    for (const facet of ["system", ...this.data.facets, "reason"]) {
      const first = facet === "system" && this.hasBoth() ? [SYSTEMS_ALONE, ""] : [""];
      this.filters[facet] = this.choice([...first, ...this.options(facet)], (name) => names.get(name) ?? name);
      fields.push(make("label", {}, facet, this.filters[facet]));
    }
    this.order = this.choice(["dataset", "system", "reason", "most reasons"], (name) => name);
    fields.push(make("label", {}, "sorted by", this.order));
    this.count = make("p", { className: "count", role: "status" });
    this.list = make("div", { className: "failures" });
    this.more = make("button", { type: "button", className: "more" });
    this.more.addEventListener("click", () => this.append(true));
    this.root.replaceChildren(make("div", { className: "filters", role: "search" }, fields), this.meaning(), this.count, this.list, this.more);
  }

  choice(names, label) {
    const select = make("select", {}, names.map((name) => make("option", { value: name }, label(name))));
    select.addEventListener("change", () => this.refresh());
    return select;
  }

  options(facet) {
    const found = new Set(this.records.flatMap((record) => this.values[facet](record)));
    const order = facet === "system" ? this.data.systems : facet === "reason" ? Object.keys(this.data.meaning) : [...found];
    return order.filter((name) => found.has(name));
  }

  /** Whether the page is about systems that controls, which are rigged to fail, would hide. */
  hasBoth() {
    const { controls, systems } = this.data;
    return controls.length < systems.length && this.records.some((record) => controls.includes(record.system));
  }

  meaning() {
    const shown = this.options("reason").map((name) => make("li", {}, sign(name), make("b", {}, name), `: ${this.data.meaning[name]}`));
    return make("details", { className: "folded" }, make("summary", {}, "What the reasons mean"), make("ul", { className: "notes" }, shown));
  }

  /** Which texts hold what is searched for; null if nothing is. */
  hits() {
    const wanted = this.search.value.trim().toLowerCase();
    if (!wanted) return null;
    this.lowered ??= this.data.texts.map((entry) => (typeof entry === "string" ? entry : entry.parts.map((p) => p[1]).join("\n")).toLowerCase());
    return { wanted, texts: this.lowered.map((text) => text.includes(wanted)) };
  }

  matches(record, hits) {
    for (const [facet, select] of Object.entries(this.filters)) {
      if (select.value && ![this.values[facet](record)].flat().includes(select.value)) return false;
    }
    return hits === null || record.one.id.toLowerCase().includes(hits.wanted) || indexes(record).some((i) => hits.texts[i]);
  }

  refresh() {
    const hits = this.hits();
    this.found = this.records.filter((record) => this.matches(record, hits));
    const rank = Object.keys(this.data.meaning);
    const keys = {
      system: (r) => r.system, reason: (r) => rank.indexOf(r.reasons[0]), "most reasons": (r) => -r.reasons.length, dataset: () => 0,
    };
    const key = keys[this.order.value];
    this.found.sort((a, b) => key(a) - key(b) || a.i - b.i);
    const left = this.data.leftOut ? ` ${number(this.data.leftOut)} more are not on this page, which would be too large.` : "";
    const all = this.records.length;
    const which = this.filters.system.value === SYSTEMS_ALONE ? ", controls left out" : "";
    this.count.textContent = (all ? `${number(this.found.length)} of ${number(all)} failures${which}.` : "Nothing failed.") + left;
    this.drawn = 0;
    this.list.replaceChildren();
    this.append(false);
  }

  append(focus) {
    const next = this.found.slice(this.drawn, this.drawn + PAGE).map((record) => this.row(record));
    this.list.append(...next);
    this.drawn += next.length;
    const rest = this.found.length - this.drawn;
    this.more.hidden = rest === 0;
    this.more.textContent = `Show ${Math.min(PAGE, rest)} more of ${number(rest)}`;
    if (focus && next.length) next[0].firstChild.focus();
  }

  row(record) {
    const { one } = record;
    const reasons = record.reasons.map((name) => make("span", { className: "reason" }, sign(name), name));
    const row = make("details", { className: "failure" }, make("summary", {},
      make("span", { className: "name" }, visible(one.id)), make("bdi", {}, visible(this.data.systems[record.system])), make("span", {}, reasons)));
    row.addEventListener("toggle", () => {
      if (row.open && row.children.length === 1) row.append((this.data.task === "forgeteval" ? openCase : openItem)(this.data, one, record));
    });
    return row;
  }
}

function sign(name) {
  return make("span", { className: "sign", ariaHidden: "true" }, SIGNS[name] ?? "●");
}

/** The indexes of all texts that a failure shows, collected once. */
function indexes(record) {
  if (!record.texts) {
    const { one } = record;
    const own = [one.facts, (one.mutations ?? []).map((m) => m[1]), one.asked.map((a) => a.slice(1)), one.request, one.target];
    const given = (record.answers ?? []).map((answer) => answer.slice(2, 4));
    record.texts = [own, given, record.error].flat(5).filter((i) => typeof i === "number" && i >= 0);
  }
  return record.texts;
}

for (const root of document.querySelectorAll(".explorer")) {
  new Explorer(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
}
