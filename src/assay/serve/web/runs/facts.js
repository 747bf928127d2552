// Structured data as a person reads it: names and values, folded where it is long. Quotations lead to their documents.

import { at } from "../lib/api.js";
import { count, dotted, el, plural } from "../lib/dom.js";

const LONG = 600; // characters of a text that are shown at first
const MANY = 12; // short entries of a list that are shown at first
const SOME = 6; // entries with parts of their own
const DEEP = 7; // levels; what lies deeper is shown as it is written
const LAST = new Set(["by", "request", "digest", "dropped", "skipped"]); // what few readers look for
const ANSWERS = new Set(["enough", "complete"]); // where "no" says something
/** @type {Words} */
const NAMES = { doc_id: "document", tokens_in: "tokens in", tokens_out: "tokens out", pass_: "pass", left_out: "left out" };

/** Any JSON value. `documents` are the titles of documents, by id. @returns {HTMLElement} */
export function facts(/** @type {any} */ value, /** @type {Words} */ documents, depth = 0) {
  if (typeof value === "string") return words(value, documents);
  if (typeof value === "number") return el("span", { class: "figures" }, Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4))));
  if (typeof value === "boolean") return el("span", {}, value ? "yes" : "no");
  if (value === null || value === undefined) return el("span", { class: "muted" }, "none");
  if (depth > DEEP) return el("code", {}, JSON.stringify(value));
  if (Array.isArray(value)) return listed(value, documents, depth);
  if (isQuotation(value)) return quotation(value, documents);
  if (value.quote && value.passage) return evidence(value, documents);
  if (value.passage && "rank" in value) return found(value, documents);
  return named(value, documents, depth);
}

/** The fields of an object, without those that say nothing. */
export function named(/** @type {any} */ value, /** @type {Words} */ documents, depth = 0, /** @type {string[]} */ without = []) {
  const all = Object.entries(value)
    .filter(([name, each]) => !without.includes(name) && !saysNothing(each, name))
    .sort(([a], [b]) => Number(LAST.has(a)) - Number(LAST.has(b)));
  if (!all.length) return el("span", { class: "muted" }, "nothing");
  return el(
    "dl",
    { class: "tree" },
    ...all.flatMap(([name, each]) => [el("dt", {}, NAMES[name] ?? name.replaceAll("_", " ")), el("dd", {}, facts(each, documents, depth + 1))]),
  );
}

function saysNothing(/** @type {any} */ value, /** @type {string} */ name) {
  if (value === null || value === "" || (value === false && !ANSWERS.has(name))) return true;
  return typeof value === "object" && !Object.keys(value).length;
}

function listed(/** @type {any[]} */ values, /** @type {Words} */ documents, /** @type {number} */ depth) {
  const plain = values.every((each) => typeof each !== "object" || each === null);
  const known = values.some((each) => each in documents);
  if (plain && !known && values.length <= MANY && values.every((each) => String(each).length < 60)) {
    return el("span", { class: "tree-line" }, ...values.map((each) => el("span", { class: "chip" }, String(each))));
  }
  if (plain && !known && values.every((each) => /^\w{12,}$/.test(each))) {
    return folded(plural(values.length, "id"), () => el("span", { class: "tree-ids" }, values.join(" ")));
  }
  const most = plain ? MANY : SOME;
  const first = values.length <= most + 3 ? values.length : most; // a button that shows two more is not worth its line
  const list = el("ol", { class: "tree-list" }, ...values.slice(0, first).map(item));
  if (values.length <= first) return list;
  const more = el("button", { type: "button", class: "link small" }, `Show ${plural(values.length - first, "more entry", "more entries")}`);
  more.addEventListener("click", () => {
    list.append(...values.slice(first).map(item));
    more.remove();
  });
  return el("div", {}, list, more);

  function item(/** @type {unknown} */ each) {
    return el("li", {}, facts(each, documents, depth + 1));
  }
}

/** A piece of evidence: the words first, what was made of them under it, the passage they come from when it is wanted. */
function evidence(/** @type {any} */ value, /** @type {Words} */ documents) {
  const { quote, passage, score, note, key, question, flagged } = value;
  const line = dotted(`score ${Number(score).toFixed(1)}`, note, flagged ? "reads like an instruction to a model" : "", question, key);
  return el(
    "div",
    {},
    quotation(quote, documents),
    el("p", { class: "small muted" }, line),
    folded("The passage it is from", () => quotation(passage, documents)),
  );
}

/** A passage that a search returned: a line, which opens to its words. */
function found(/** @type {any} */ value, /** @type {Words} */ documents) {
  const { passage, rank } = value;
  const start = passage.text.slice(0, 110).replace(/\s+/g, " ");
  const title = [documents[passage.doc_id], passage.page ? `page ${passage.page}` : ""].filter(Boolean).join(", ");
  return folded([el("strong", { dir: "auto" }, title || "a document that is gone"), el("span", { class: "muted", dir: "auto" }, ` ${start}…`)], () =>
    el("div", {}, quotation(passage, documents), el("p", { class: "small muted figures" }, `rank ${rank}`)),
  );
}

/** Something that is made when it is opened. */
function folded(/** @type {Child} */ title, /** @type {() => Node} */ make) {
  const box = el("details", { class: "fold tree-fold" }, el("summary", {}, el("span", {}, title)));
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(make());
  });
  return box;
}

/** A text: a document's id becomes its title, JSON is laid out, and what is long is folded. */
function words(/** @type {string} */ text, /** @type {Words} */ documents) {
  if (Object.hasOwn(documents, text)) return el("a", { href: `#${at("document", text)}`, dir: "auto" }, documents[text] || text);
  const laidOut = asJson(text);
  if (laidOut !== undefined) return facts(laidOut, documents, 2);
  if (text.length <= LONG) return el("span", { class: "tree-text", dir: "auto" }, text);
  const shown = document.createTextNode(`${text.slice(0, LONG)}… `);
  const more = el("button", { type: "button", class: "link small" }, `Show all ${count(text.length)} characters`);
  more.addEventListener("click", () => {
    shown.data = text;
    more.remove();
  });
  return el("span", { class: "tree-text", dir: "auto" }, shown, more);
}

/** What a model wrote as JSON, read; undefined for anything else. */
function asJson(/** @type {string} */ text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isQuotation(/** @type {any} */ value) {
  return typeof value.doc_id === "string" && typeof value.text === "string" && Number.isInteger(value.start) && Number.isInteger(value.end);
}

/** Words of a document, and the way to where they stand. */
export function quotation(/** @type {any} */ quote, /** @type {Words} */ documents) {
  const title = documents[quote.doc_id];
  const where = dotted(quote.page ? `page ${quote.page}` : "", quote.heading ?? "");
  const text = quote.text ? words(quote.text, {}) : el("span", { class: "muted" }, "These words are gone: the document was removed, or has changed.");
  return el(
    "figure",
    { class: "cited-words" },
    el("blockquote", { class: "serif", dir: "auto" }, text),
    el(
      "figcaption",
      { class: "small muted" },
      title !== undefined ? el("a", { href: placeOf(quote), dir: "auto" }, title || "Untitled") : el("span", {}, "a document that is not there any more"),
      where ? ` · ${where}` : "",
    ),
  );
}

export function placeOf(/** @type {any} */ quote) {
  return `#/document/${encodeURIComponent(quote.doc_id)}?start=${quote.start}&end=${quote.end}`;
}
