// A draft, statement by statement, with what the check said of each. A reviewer writes one anew or drops it, in its place.

import { citeButton, verdictMark } from "./citations.js";
import { opensDetails } from "./claim_details.js";
import { el, fill, oneLine } from "../lib/dom.js";
import { editedMark, figureMark } from "./review_status.js";
import { badge, button, icon } from "../lib/ui.js";

/** `edits()` is place → words (none: dropped) of what differs from the draft; `changed(edits)` hears of each change. */
export function draftView(/** @type {ReviewView} */ review, /** @type {Context} */ context, /** @type {{ editable: boolean; edits: Map<number, string>; changed(edits: Map<number, string>): void }} */ { editable, edits, changed }) {
  const sources = sourcesOf(review);
  const headings = headingsOf(review);
  const delivered = new Set([...headings.keys()].map(oneLine));
  const now = new Map(edits);
  const list = el("ol", { class: "draft" });
  let last = "";
  for (const claim of review.claims) {
    const heading = headings.get(claim.text) ?? "";
    if (heading && heading !== last) list.append(el("li", { class: "draft-heading" }, el("h3", {}, heading)));
    last = heading || last;
    list.append(statement(claim));
  }
  const none = review.answer ? review.answer.said || "There are no statements in it." : "The draft is not shown to whoever asked.";
  if (!review.claims.length) list.append(el("li", { class: "muted" }, none));

  function set(/** @type {number} */ place, /** @type {string | null} */ words) {
    if (words === null) now.delete(place);
    else now.set(place, words);
    changed(now);
  }

  function statement(/** @type {DraftClaimView} */ claim) {
    const node = el("li", { class: ["statement", claim.verdict], dataset: { place: String(claim.place) } });
    const name = `Statement ${claim.place + 1}`;

    const draw = (focus = "") => {
      const given = now.get(claim.place);
      const dropped = given === "";
      node.classList.toggle("dropped", dropped);
      node.classList.toggle("changed", given !== undefined);
      fill(node, dropped ? struck() : given === undefined ? asItStands() : writing(given));
      if (focus) node.querySelector(focus)?.focus();
    };

    const asItStands = () => [
      el(
        "p",
        { class: "statement-words", dir: "auto" },
        claim.text,
        el(
          "span",
          { class: "marks" },
          ...cites(claim, sources, context),
          verdictMark(claim, true, (mark) => opensDetails(mark, claim, own(claim, sources), context)),
          claim.dispute ? badge("two judgements differ", "warn") : null,
          claim.edited ? editedMark(claim.edited) : null,
          figureMark(claim),
        ),
      ),
      claim.why && claim.verdict !== "supported" ? el("p", { class: "small muted" }, claim.why) : null,
      flagged(claim),
      review.answer && !delivered.has(oneLine(claim.text)) ? el("p", { class: "small muted" }, "Not in the answer: it failed the check.") : null,
      editable && claim.editable
        ? el(
          "div",
          { class: "actions" },
          button("Edit", {
            kind: "quiet small",
            icon: "pencil",
            "aria-label": `Edit ${name.toLowerCase()}`,
            on: () => (set(claim.place, claim.text), draw("textarea")),
          }),
          button("Drop", {
            kind: "quiet small",
            icon: "trash",
            "aria-label": `Drop ${name.toLowerCase()}`,
            on: () => (set(claim.place, ""), draw("button")),
          }),
        )
        : null,
    ];

    const writing = (/** @type {string} */ words) => {
      const box = el("textarea", { rows: "3", maxlength: "4000", "aria-label": `${name}, in your words`, value: words, dir: "auto" });
      box.addEventListener("input", () => set(claim.place, box.value));
      return [
        box,
        el("p", { class: "statement-was small", dir: "auto" }, el("span", { class: "muted" }, "Was: "), claim.text, el("span", { class: "marks" }, ...cites(claim, sources, context))),
        el(
          "div",
          { class: "actions" },
          button("Undo", { kind: "quiet small", icon: "undo", "aria-label": `Undo the edit of ${name.toLowerCase()}`, on: undo }),
          el("span", { class: "hint" }, "It keeps its sources, and is checked against them again."),
        ),
      ];
    };

    const struck = () => [
      el("p", { class: "statement-words", dir: "auto" }, el("s", {}, claim.text)),
      el(
        "div",
        { class: "actions" },
        button("Undo", { kind: "quiet small", icon: "undo", "aria-label": `Keep ${name.toLowerCase()} after all`, on: undo }),
        el("span", { class: "hint" }, "Dropped: it will not be in the answer."),
      ),
    ];

    const undo = () => {
      set(claim.place, null);
      draw("button[aria-label^='Edit']");
    };

    draw();
    return node;
  }

  return {
    node: list,
    /** What differs from the draft. */
    edits: () => new Map([...now].filter(([place, words]) => words.trim() !== (wordsAt(review, place) ?? "").trim())),
  };
}

function wordsAt(/** @type {ReviewView} */ review, /** @type {number} */ place) {
  return review.claims.find((claim) => claim.place === place)?.text;
}

function flagged(/** @type {DraftClaimView} */ claim) {
  if (!claim.rests_on_flagged) return null;
  return el(
    "p",
    { class: "note warn small" },
    icon("warning", 15),
    el("span", {}, el("strong", {}, "Rests only on a flagged passage"), ": one that reads like an instruction to a model."),
  );
}

/** Sources by key and by number: the quotations that statements cite. */
function sourcesOf(/** @type {ReviewView} */ review) {
  const found = new Map();
  for (const each of review.answer?.citations ?? []) found.set(each.key, each).set(each.number, each);
  let number = Math.max(0, ...(review.answer?.citations ?? []).map((each) => each.number));
  for (const piece of review.evidence) if (!found.has(piece.key)) found.set(piece.key, { ...piece, number: 0, next: () => ++number });
  return found;
}

/** The sources that a statement is shown with: the words that carry it where the answer has it, else its evidence. */
function own(/** @type {DraftClaimView} */ claim, /** @type {Map<string | number, any>} */ sources) {
  const cited = claim.citations.length ? claim.citations : claim.cites;
  return cited.filter((cite) => sources.has(cite)).map((cite) => {
    const source = sources.get(cite);
    source.number ||= source.next();
    return source;
  });
}

function cites(/** @type {DraftClaimView} */ claim, /** @type {Map<string | number, any>} */ sources, /** @type {Context} */ context) {
  return own(claim, sources).map((source) => citeButton(source, context.openDocument));
}

function headingsOf(/** @type {ReviewView} */ review) {
  const all = (review.answer?.blocks ?? []).flatMap((block) => block.claims.map((claim) => /** @type {const} */ ([claim.text, block.heading])));
  return new Map(all);
}
