// The evidence library of a run: every piece that bears on the question, with its score; sorted, filtered, opened.

import { flaggedNote, quotedWords } from "./citations.js";
import { count, dotted, el, fill, oneLine, plural } from "../lib/dom.js";
import { atTheEnd, badge, check, icon } from "../lib/ui.js";

const AT_ONCE = 40;
/** @type {Record<string, [string, (a: Piece, b: Piece) => number]>} */
const SORTS = {
  score: ["Best first", (a, b) => b.score - a.score],
  document: ["By document", (a, b) => a.title.localeCompare(b.title) || a.start - b.start],
  newest: ["Newest document first", (a, b) => (b.date ?? "").localeCompare(a.date ?? "") || b.score - a.score],
  oldest: ["Oldest document first", (a, b) => (a.date ?? "9999").localeCompare(b.date ?? "9999") || b.score - a.score],
  order: ["As it was found", (a, b) => (a.order ?? 0) - (b.order ?? 0)],
};

/** The library; `show(pieces)` takes what there is now, which may be more than before. `open(piece)` shows the document. */
export function evidenceView(/** @type {Context["openDocument"]} */ open) {
  let pieces = /** @type {Piece[]} */ ([]);
  let end = /** @type {EndMark | null} */ (null);
  const words = el(
    "input",
    { type: "search", placeholder: "Words in it", "aria-label": "Only evidence with these words", autocomplete: "off" },
  );
  const document_ = el("select", { "aria-label": "Only from this document" });
  const sort = el(
    "select",
    { "aria-label": "Order of the evidence" },
    ...Object.entries(SORTS).map(([value, [name]]) => el("option", { value }, name)),
  );
  const cited = el("input", { type: "checkbox" });
  const citedRow = check(cited, "Only what the answer cites");
  const status = el("p", { class: "small muted figures", role: "status" });
  const list = el("ol", { class: "evidence-list" });
  const node = el(
    "div",
    { class: "evidence" },
    el("div", { class: "evidence-tools" }, words, document_, sort, citedRow),
    status,
    list,
  );

  for (const control of [words, document_, sort, cited]) control.addEventListener("input", draw);
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const own = event.target instanceof Element ? event.target.closest("li") : null;
    const next = event.key === "ArrowDown" ? own?.nextElementSibling : own?.previousElementSibling;
    const target = next?.querySelector("button");
    if (!target) return;
    event.preventDefault();
    target.focus();
  });

  function draw() {
    const held = list.contains(document.activeElement) ? document.activeElement?.closest("li")?.dataset.key : null;
    const wanted = words.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const shown = pieces
      .filter((piece) => !document_.value || piece.document === document_.value)
      .filter((piece) => !cited.checked || piece.cited)
      .filter((piece) => {
        const text = `${piece.quote} ${piece.note} ${piece.title} ${piece.heading}`.toLowerCase();
        return wanted.every((word) => text.includes(word));
      })
      .sort(SORTS[sort.value][1]);
    const documents = new Set(shown.map((piece) => piece.document)).size;
    const from = ` from ${plural(documents, "document")}`;
    const some = shown.length < pieces.length ? `${count(shown.length)} of ` : "";
    status.textContent = `${some}${plural(pieces.length, "piece")}${some ? "" : from}`;
    end?.stop();
    fill(list);
    if (!shown.length) {
      fill(
        list,
        el(
          "li",
          { class: "state slim" },
          pieces.length ? "Nothing matches these filters." : "Nothing has been gathered yet.",
        ),
      );
      return;
    }
    let drawn = 0;
    const more = () => {
      for (const piece of shown.slice(drawn, drawn + AT_ONCE)) last.before(pieceOf(piece, open));
      drawn += AT_ONCE;
      if (drawn >= shown.length) {
        mark.stop();
        last.remove();
      }
    };
    const mark = (end = atTheEnd(more));
    const last = el("li", { role: "presentation" }, mark);
    list.append(last);
    more();
    if (held) [...list.querySelectorAll("li")].find((each) => each.dataset.key === held)?.querySelector("button")?.focus();
  }

  function show(/** @type {Piece[]} */ now) {
    pieces = now.map((piece, order) => ({ order, ...piece }));
    citedRow.hidden = !pieces.some((piece) => piece.cited);
    if (citedRow.hidden) cited.checked = false;
    const selected = document_.value;
    const titles = new Map(pieces.map((piece) => [piece.document, piece.title]));
    fill(
      document_,
      el("option", { value: "" }, "All documents"),
      ...[...titles].map(([id, title]) => el("option", { value: id }, title)),
    );
    document_.value = titles.has(selected) ? selected : "";
    draw();
  }

  return { node, show };
}

function pieceOf(/** @type {Piece} */ piece, /** @type {Context["openDocument"]} */ open) {
  return el(
    "li",
    { class: ["piece", piece.cited && "cited"], dataset: { key: piece.key } },
    el(
      "div",
      { class: "piece-head" },
      score(piece.score),
      el(
        "button",
        { type: "button", class: "link piece-title", on: { click: (event) => open(piece, event.currentTarget) } },
        piece.title,
      ),
      piece.cited ? badge("cited", "info") : null,
    ),
    el("p", { class: "small muted" }, dotted(piece.date, piece.page ? `page ${piece.page}` : "", piece.heading)),
    quotedWords(piece),
    piece.note && oneLine(piece.note) !== oneLine(piece.quote) ? el(
      "p",
      { class: "small piece-note" },
      icon("pencil", 14),
      piece.note,
    ) : null,
    piece.flagged ? flaggedNote() : null,
  );
}

export function score(/** @type {number} */ value) {
  return el(
    "span",
    { class: ["score", "figures", value >= 7 && "high"], title: "Relevance to the question, 0 to 10" },
    el("span", { class: "visually-hidden" }, "Score "),
    value.toFixed(1),
  );
}
