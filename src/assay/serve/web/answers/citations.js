// Citations: a small numbered button; the quotation at a glance, the page of the document on opening. And verdicts.

import { dotted, el, fill, oneLine } from "../lib/dom.js";
import { badge, button, icon, note } from "../lib/ui.js";
import { tableBox } from "../documents/data_table.js";

/** @type {Record<string, { sign: string; words: string; kind: string; means: string }>} */
export const VERDICTS = {
  supported: { sign: "check", words: "Supported", kind: "good", means: "follows from the words shown" },
  partial: { sign: "half", words: "Partly supported", kind: "warn", means: "a part of it follows" },
  unsupported: { sign: "minus", words: "Not supported", kind: "bad", means: "the sources do not say it" },
  contradicted: { sign: "close", words: "Contradicted", kind: "bad", means: "the sources say otherwise" },
  uncited: { sign: "bang", words: "No source", kind: "warn", means: "it cites nothing" },
};

/** @type {Words} */
const UNSAID = {
  quotation: "The document contains exactly these words.",
  supported: "It follows from the words shown.",
};

/** Where words stand: `Title · 2024 · page 3`. */
export function placeOf(/** @type {Source} */ source) {
  return dotted(source.title || source.name, source.date, source.page ? `page ${source.page}` : "");
}

export function flaggedNote() {
  return note("warn flagged", "warning", "This passage reads like an instruction to a model. It was treated as a quotation and nothing else.");
}

/** The words of a source: a quotation, or the rows of a table that it is from, with their header. */
export function quotedWords(/** @type {Source} */ source) {
  return source.table ? tableBox(source.table).box : el("blockquote", { class: "quote" }, `“${oneLine(source.quote)}”`);
}

/** The button of a citation. `open(source)` shows the document. */
export function citeButton(/** @type {Source} */ source, /** @type {Context["openDocument"]} */ open) {
  const warned = source.flagged ? ". Reads like an instruction" : "";
  const name = `Source ${source.number}: ${placeOf(source)}${warned}`;
  const node = el(
    "button",
    { type: "button", class: ["cite", source.flagged && "flagged"], "aria-label": name },
    String(source.number),
  );
  hints(
    node,
    () => [
      quotedWords(source),
      el("p", { class: "stands" }, placeOf(source)),
      source.flagged ? flaggedNote() : null,
      button("Open the page", { kind: "small", icon: "document", on: () => (hide(), open(source, node)) }),
    ],
    () => open(source, node),
  );
  return node;
}

/** A verdict: its sign, its word where it is not good, and why on demand: in a card, or as `opens(mark)` makes it open. */
export function verdictMark(/** @type {Judged} */ claim, always = false, /** @type {((mark: HTMLElement) => void) | null} */ opens = null, /** @type {Source[]} */ sources = []) {
  const verdict = claim.verdict && VERDICTS[claim.verdict];
  if (!verdict) return null;
  const quiet = claim.verdict === "supported" && !always;
  const node = el(
    "button",
    {
      type: "button",
      class: ["verdict", verdict.kind, quiet && "quiet"],
      "aria-label": `Verdict: ${verdict.words}. Why?`,
    },
    icon(verdict.sign, 13),
    quiet ? null : el("span", {}, verdict.words),
  );
  if (opens) {
    opens(node);
    glances(node, () => [
      el("p", {}, el("strong", {}, verdict.words), `: ${verdict.means}. `, claim.working ? el("span", { class: "figures" }, claim.working.expression) : null),
      ...sources.slice(0, 2).flatMap((source) => [quotedWords(source), el("p", { class: "stands" }, placeOf(source))]),
      sources.length > 2 ? el("p", { class: "stands" }, `and ${sources.length - 2} more`) : null,
      el("p", { class: "hint" }, "Press for the whole account."),
    ]);
  } else hints(node, () => [
    badge(verdict.words, verdict.kind),
    el("p", {}, claim.why || UNSAID[claim.quotation ? "quotation" : claim.verdict ?? ""] || "No reason is on record."),
    claim.by ? el("p", { class: "stands" }, `Given by ${claim.by}`) : null,
  ]);
  return node;
}

// One card for the whole page, beside whatever it speaks of

const card = el("div", { class: "hint-card", id: "hint-card", role: "group", "aria-label": "Quotation", hidden: true });
let held = /** @type {HTMLElement | null} */ (null); // what the card speaks of
let timer = 0;

function made() {
  if (card.isConnected) return card;
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && later(hide, 200));
  card.addEventListener(
    "focusout",
    (event) => card.contains(event.relatedTarget) || event.relatedTarget === held || hide(),
  );
  document.addEventListener("pointerdown", (event) => {
    if (held && !card.contains(event.target) && !held.contains(event.target)) hide();
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !held) return;
      event.stopPropagation(); // this, and nothing else, is closed
      if (card.contains(document.activeElement)) held.focus();
      hide();
    },
    true,
  );
  window.addEventListener("scroll", () => held && beside(), { passive: true, capture: true });
  window.addEventListener("hashchange", hide);
  document.body.append(card);
  return card;
}

function later(/** @type {() => void} */ act, /** @type {number} */ wait) {
  clearTimeout(timer);
  timer = setTimeout(act, wait);
}

/** A card while the mouse or the keyboard is on something that does something else when it is pressed. */
function glances(/** @type {HTMLElement} */ node, /** @type {() => Child[]} */ content) {
  hovers(node, shower(node, content));
  node.addEventListener("click", hide);
}

function shower(/** @type {HTMLElement} */ node, /** @type {() => Child[]} */ content) {
  return () => {
    clearTimeout(timer);
    if (held && held !== node) hide();
    held = node;
    fill(made(), ...content());
    card.hidden = false;
    const parts = [...card.children].filter((each) => !each.matches("button"));
    parts.forEach((each, place) => (each.id = `hint-${place}`)); // its parts: the card itself goes by its name
    node.setAttribute("aria-describedby", parts.map((each) => each.id).join(" "));
    beside();
  };
}

function hovers(/** @type {HTMLElement} */ node, /** @type {() => void} */ show) {
  node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && later(show, 120));
  node.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && later(hide, 220));
  node.addEventListener("focus", () => node.matches(":focus-visible") && show());
  node.addEventListener("blur", (event) => held === node && !card.contains(event.relatedTarget) && hide());
}

function hints(/** @type {HTMLElement} */ node, /** @type {() => Child[]} */ content, /** @type {(() => void) | null} */ act = null) {
  const show = shower(node, content);
  let touched = false;
  hovers(node, show);
  node.addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch";
  });
  node.addEventListener("click", () => {
    if (touched || !act) {
      if (held === node && !card.hidden && touched) hide();
      else show();
    } else {
      hide();
      act();
    }
    touched = false;
  });
}

function hide() {
  clearTimeout(timer);
  held?.removeAttribute("aria-describedby");
  held = null;
  card.hidden = true;
}

function beside() {
  if (!held?.isConnected) return hide();
  const at = held.getBoundingClientRect();
  if (at.bottom < 0 || at.top > innerHeight) return hide();
  const { width, height } = card.getBoundingClientRect();
  const room = innerHeight - at.bottom;
  const above = room < height + 16 && at.top > room;
  card.style.setProperty("left", `${Math.max(8, Math.min(at.left - 24, innerWidth - width - 8))}px`);
  card.style.setProperty("top", `${above ? at.top - height - 6 : at.bottom + 6}px`);
}
