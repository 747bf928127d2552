// What whoever asked sees of a review: that it waits, was not approved, or by whom it was. The draft is no part of it.

import { ago, el, plural } from "../lib/dom.js";
import { badge, bullets, icon, note, traceLink } from "../lib/ui.js";

export function awaitingReviewView(/** @type {RunView} */ run) {
  const reasons = run.held?.reasons ?? [];
  return el(
    "section",
    { class: "halted card held", "aria-label": "Waits for a reviewer" },
    el(
      "div",
      { class: "note warn" },
      icon("shield"),
      el(
        "div",
        {},
        el("strong", {}, "Waits for a reviewer"),
        el("p", {}, "The answer is ready. A person looks at it first; it appears here once they have approved it. You can leave meanwhile."),
        run.held?.progress ? el("p", { class: "done-so-far" }, run.held.progress) : null,
      ),
    ),
    reasons.length
      ? el("div", {}, el("p", { class: "legend" }, "Because"), bullets(reasons))
      : null,
    foot(run, run.held?.since ? `Held ${ago(run.held.since)}` : ""),
  );
}

export function rejectedView(/** @type {RunView} */ run) {
  const { by = "", note = "" } = run.rejected ?? {};
  return el(
    "section",
    { class: "halted card rejected", "aria-label": "Not approved" },
    el(
      "div",
      { class: "note bad" },
      icon("close"),
      el(
        "div",
        {},
        el("strong", {}, by ? `Not approved by ${by}` : "Not approved"),
        el("p", {}, "A reviewer looked at the answer and did not let it through."),
      ),
    ),
    note ? el("figure", { class: "review-note" }, el("figcaption", { class: "legend" }, by ? `What ${by} says` : "What was said"), el("blockquote", { dir: "auto" }, note)) : null,
    foot(run),
  );
}

/** An answer that was delivered once, and that this person may not read any more. */
export function withheldView(/** @type {RunView} */ run) {
  return el(
    "section",
    { class: "halted card", "aria-label": "Withheld" },
    note("", "lock", run.withheld || "The answer is withheld."),
    foot(run),
  );
}

/** That a person stands between this run and whoever asked. */
export function reviewNote(/** @type {RunView} */ run) {
  const { held, rejected } = run;
  if (held) return el(
    "div",
    { class: "note warn" },
    icon("shield"),
    el("div", {}, el("strong", {}, "Waits for a reviewer"), held.reasons.length ? bullets(held.reasons) : null),
  );
  if (rejected) return note("bad", "close", el("strong", {}, `Not approved by ${rejected.by}`), rejected.note ? `: ${rejected.note}` : "");
  return null;
}

/** That a person has approved it, and who. */
export function reviewedBy(/** @type {RunView} */ run) {
  if (!run.reviewed?.by) return null;
  const edited = (run.answer?.blocks ?? []).flatMap((block) => block.claims).filter((claim) => claim.edited).length;
  return el(
    "p",
    { class: "reviewed small" },
    icon("shield", 15),
    el(
      "span",
      {},
      `Reviewed by ${run.reviewed.by}`,
      edited ? `, who wrote ${plural(edited, "statement")} anew` : "",
      run.reviewed.note ? `: ${run.reviewed.note}` : "",
    ),
  );
}

/** That a reviewer wrote a statement anew. */
export function editedMark(/** @type {string} */ by) {
  return badge([icon("pencil", 12), `edited by ${by}`], "info", { title: "Rewritten in review and checked again" });
}

/** What is read from a picture is no proof: who read it is said. */
export function figureMark(/** @type {{ basis: string; edited: string | null }} */ claim) {
  return claim.basis === "figure" ? badge(`read from a figure by ${claim.edited ? "a reviewer" : "the model"}`, "info") : null;
}

function foot(/** @type {RunView} */ run, words = "") {
  return el("div", { class: "actions" }, traceLink(run.id), words ? el("span", { class: "small muted" }, words) : null);
}
