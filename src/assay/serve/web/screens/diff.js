// Two runs side by side: what changed first, what is the same folded away.

import { at, get } from "../lib/api.js";
import { count, el, fill, plural } from "../lib/dom.js";
import { grid, icon } from "../lib/ui.js";
import { standing } from "./runs.js";

/** @type {Words} */
const NAMES = {
  question: "Question",
  route: "Route",
  plan: "Plan",
  searches: "Searches",
  evidence: "Evidence",
  claims: "Statements",
  answer: "Answer",
  cost: "Cost",
};
const COST = "cost";
const ORDER = ["claims", "answer", "evidence", "searches", "plan", "route", "question", "cost"];
const SHORT = 40; // characters of a value that stands in a table
const SOME = 30; // entries of a column at first

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Compare runs");
  const path = at("api", "runs", params.a);
  const [diff, a, b] = await Promise.all([
    get(`${path}/diff/${encodeURIComponent(params.b)}`),
    get(path),
    get(at("api", "runs", params.b)),
  ]);
  const parts = [...diff.parts].sort((left, right) => ORDER.indexOf(left.name) - ORDER.indexOf(right.name));
  const changed = parts.filter((part) => !part.same && part.name !== COST);
  const same = parts.filter((part) => part.same && part.name !== COST);
  const cost = parts.find((part) => part.name === COST && part.changed.length); // which differs anyhow
  fill(
    root,
    el(
      "div",
      { class: "page diff" },
      el(
        "header",
        { class: "trace-head" },
        el("a", { class: "crumb small", href: "#/runs" }, icon("left", 14), "All runs"),
        el("h1", {}, "Compare runs"),
        el(
          "p",
          { class: "muted" },
          changed.length
            ? `Different: ${changed.map((part) => nameOf(part).toLowerCase()).join(", ")}.`
            : "Both runs have the same steps and the same answer.",
        ),
      ),
      el("div", { class: "diff-two" }, side("First", a), side("Second", b)),
      ...changed.map(partView),
      cost ? partView(cost) : null,
      same.length
        ? el("p", { class: "small muted diff-same" }, icon("check", 15), `The same in both: ${same.map((part) => nameOf(part).toLowerCase()).join(", ")}.`)
        : null,
    ),
  );
}

function nameOf(/** @type {DifferencePartView} */ part) {
  return NAMES[part.name] ?? part.name;
}

function side(/** @type {string} */ words, /** @type {RunView} */ run) {
  const branch = run.models.join(", ") || "no model";
  return el(
    "section",
    { class: "card diff-run", "aria-label": `${words} run` },
    el("p", { class: "legend" }, words),
    el("p", {}, el("a", { href: `#${at("run", run.id)}`, dir: "auto" }, run.question || "(erased)")),
    el(
      "p",
      { class: "trace-state small muted" },
      standing(run),
      [new Date(run.started).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }), branch].join(" · "),
    ),
  );
}

function partView(/** @type {DifferencePartView} */ part) {
  const only = part.only_a.length + part.only_b.length;
  const many = [part.changed.length ? `${count(part.changed.length)} changed` : "", only ? `${count(only)} in one only` : ""];
  const name = nameOf(part);
  const figures = part.changed.filter(isShort);
  const long = part.changed.filter((each) => !isShort(each));
  return el(
    "section",
    { class: "diff-part", "aria-label": name },
    el("h2", {}, name, " ", el("small", { class: "muted" }, many.filter(Boolean).join(" · "))),
    figures.length ? figureTable(figures, name) : null,
    ...long.map((each) => el(
      "div",
      { class: "diff-change" },
      each.what ? el("p", { class: "legend diff-what" }, each.what) : null,
      el("div", { class: "diff-two" }, ...changedWords(each)),
    )),
    only ? el("div", { class: "diff-two" }, column(part.only_a, "a"), column(part.only_b, "b")) : null,
  );
}

function isShort(/** @type {Change} */ { what, a, b }) {
  return Boolean(what) && String(a ?? "").length < SHORT && String(b ?? "").length < SHORT;
}

function figureTable(/** @type {Change[]} */ rows, /** @type {string} */ name) {
  const values = rows.map(({ what, a, b }) => [el("th", { scope: "row" }, what), ...[a, b].map((each) => el("td", { dir: "auto" }, String(each ?? "–")))]);
  return grid(`${name}, side by side`, [el("td", {}), "First", "Second"], values, "diff-figures");
}

/** Both versions, with what differs marked. */
function changedWords(/** @type {Change} */ { a, b }) {
  const [left, right] = [String(a ?? ""), String(b ?? "")];
  const [head, tail] = shared(left, right);
  return [["a", left], ["b", right]].map(([which, words]) => el(
    "p",
    { class: `diff-words ${which}`, dir: "auto" },
    el("span", { class: "visually-hidden" }, which === "a" ? "First: " : "Second: "),
    words ? [
      words.slice(0, head),
      words.length - tail > head ? el("mark", {}, words.slice(head, words.length - tail)) : null,
      words.slice(words.length - tail),
    ] : el("span", { class: "muted" }, "nothing"),
  ));
}

/** How many characters two texts share at their beginnings and ends, in whole words. */
function shared(/** @type {string} */ a, /** @type {string} */ b) {
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head += 1;
  if (head < Math.max(a.length, b.length)) head = a.lastIndexOf(" ", head - 1) + 1;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  while (tail > 0 && !/\s/.test(a[a.length - tail])) tail -= 1;
  return head + tail > least ? [head, 0] : [head, tail];
}

function column(/** @type {string[]} */ items, /** @type {"a" | "b"} */ which) {
  const sign = which === "a" ? "minus" : "plus";
  const list = el(
    "ul",
    { class: `diff-only ${which}`, "aria-label": which === "a" ? "Only in the first" : "Only in the second" },
    ...items.slice(0, SOME).map(item),
  );
  if (!items.length) list.append(el("li", { class: "muted small" }, which === "a" ? "Nothing only in the first" : "Nothing only in the second"));
  if (items.length <= SOME) return list;
  const more = el("button", { type: "button", class: "link small" }, `Show ${plural(items.length - SOME, "more entry", "more entries")}`);
  more.addEventListener("click", () => {
    list.append(...items.slice(SOME).map(item));
    more.remove();
  });
  return el("div", {}, list, more);

  function item(/** @type {string} */ words) {
    return el("li", { dir: "auto" }, icon(sign, 14), el("span", {}, words));
  }
}
