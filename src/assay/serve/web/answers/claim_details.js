// What stands behind a claim: its basis, its verdict and who gave it, the words that carry it, the working, what rules noticed.

import { citeButton, placeOf, quotedWords, VERDICTS } from "./citations.js";
import { el } from "../lib/dom.js";
import { button, copyWords, icon } from "../lib/ui.js";
import { giveFeedback } from "./feedback.js";

/** @type {Table} */
const BASES = {
  quotation: ["Quotation", "words of the document, compared character by character"],
  calculation: ["Calculation", "computed by code from cited figures"],
  count: ["Count", "cited items, counted by code"],
  comparison: ["Comparison", "cited figures or dates, compared by code"],
  table: ["From a table", "looked up by rule"],
  scan: ["From a scan", "read by OCR, not proven: compare it with the page"],
  figure: ["From a figure", "read from a figure, and judged by its picture; not proven"],
  catalogue: ["From the catalogue", "titles, dates and authors of the documents"],
  statement: ["Statement", "held against the passages that it cites"],
  opinion: ["Opinion", "a judgement, not a finding; the facts in it were checked"],
};
const CODE = "code";
let made = 0;

/** Who gave the verdict, in words. */
function judgeOf(/** @type {Told} */ claim) {
  if (!claim.by) return "";
  return claim.by === CODE ? "Given by code." : `Given by the model ${claim.by}.`;
}

/** Make a claim's mark open and close its details, below the claim. `sources` are those that the claim is shown with. */
export function opensDetails(/** @type {HTMLElement} */ mark, /** @type {Told} */ claim, /** @type {Source[]} */ sources, /** @type {Context} */ context) {
  let panel = /** @type {HTMLElement | null} */ (null);
  const close = () => {
    (panel?.closest(".claim-details-row") ?? panel)?.remove();
    panel = null;
    mark.setAttribute("aria-expanded", "false");
    mark.removeAttribute("aria-controls");
  };
  const leave = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !panel) return;
    event.stopPropagation(); // this, and nothing else, is closed
    close();
    mark.focus();
  };
  mark.setAttribute("aria-expanded", "false");
  mark.addEventListener("keydown", leave);
  mark.addEventListener("click", () => {
    if (panel) return close();
    panel = claimDetails(claim, sources, context);
    panel.addEventListener("keydown", leave);
    mark.setAttribute("aria-expanded", "true");
    mark.setAttribute("aria-controls", panel.id);
    below(mark, panel);
  });
}

function below(/** @type {HTMLElement} */ mark, /** @type {HTMLElement} */ panel) {
  const row = mark.closest("tr");
  const words = mark.closest(".statement-words");
  if (row) row.after(el("tr", { class: "claim-details-row" }, el("td", { colspan: "99" }, panel)));
  else if (words) words.after(panel);
  else mark.closest(".claim")?.append(panel);
}

function claimDetails(/** @type {Told} */ claim, /** @type {Source[]} */ sources, /** @type {Context} */ context) {
  made += 1;
  const { app, run } = context;
  const [name, about] = BASES[claim.basis] ?? BASES.statement;
  return el(
    "div",
    { class: "claim-details", id: `claim-details-${made}`, role: "group", "aria-label": "What this statement rests on" },
    el(
      "dl",
      {},
      fact("Basis", el("p", {}, el("strong", {}, name), ": ", about)),
      fact("Verdict", ...verdict(claim)),
      claim.working ? fact("Working", ...working(claim.working, sources, context)) : null,
      sources.length ? fact("Words", ...sources.map((source) => words(source, context))) : null,
    ),
    el(
      "div",
      { class: "actions" },
      app ? button("Copy with citations", { kind: "quiet small", icon: "copy", on: () => copied(claim, sources, app) }) : null,
      app && run && claim.place !== undefined
        ? button("Not right?", { kind: "quiet small", icon: "bang", on: () => giveFeedback(app, run, claim.place, claim.text) })
        : null,
    ),
  );
}

/** The statement with where it stands, for a text of one's own. */
function copied(/** @type {Told} */ claim, /** @type {Source[]} */ sources, /** @type {App} */ app) {
  const words = "quotation" in claim && claim.quotation ? `“${claim.text}”` : claim.text;
  return copyWords(app, [`${words} ${sources.map((source) => `[${source.number}]`).join("")}`, ...sources.map((source) => `[${source.number}] ${placeOf(source)}`)].join("\n"));
}

function fact(/** @type {string} */ name, /** @type {Child[]} */ ...values) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, ...values));
}

function verdict(/** @type {Told} */ claim) {
  const verdict = VERDICTS[claim.verdict ?? "uncited"];
  return [
    el(
      "p",
      {},
      el("span", { class: ["tallied", verdict.kind] }, icon(verdict.sign, 13), el("strong", {}, verdict.words)),
      `: ${claim.basis === "figure" && claim.verdict === "supported" ? `the picture shows it, as its ${claim.by === CODE ? "reviewer" : "judge"} sees it` : verdict.means}. ${judgeOf(claim)}`,
    ),
    claim.why ? el("p", { dir: "auto" }, `Reason: ${claim.why}`) : null,
    claim.dispute
      ? el("p", { class: "tallied warn", dir: "auto" }, icon("warning", 13), claim.dispute.replace(/^t/, "T"))
      : null,
  ];
}

function working(/** @type {WorkingView} */ shown, /** @type {Source[]} */ sources, /** @type {Context} */ context) {
  return [
    el("p", { class: "expression figures" }, shown.expression),
    el(
      "ul",
      { class: "operands" },
      ...shown.operands.map((operand) => {
        const source = sources.find((each) => each.number === operand.citation);
        return el(
          "li",
          { dir: "auto" },
          el("strong", { class: "figures" }, operand.words),
          operand.line ? [" in “", ...marked(operand.line, operand.words), "”"] : null,
          source ? [" ", citeButton(source, context.openDocument)] : null,
        );
      }),
    ),
  ];
}

/** A line with the operand's words marked. */
function marked(/** @type {string} */ line, /** @type {string} */ words) {
  const at = line.indexOf(words);
  return at < 0 ? [line] : [line.slice(0, at), el("mark", {}, words), line.slice(at + words.length)];
}

function words(/** @type {Source} */ source, /** @type {Context} */ context) {
  return el("div", { class: "carried" }, citeButton(source, context.openDocument), quotedWords(source));
}
