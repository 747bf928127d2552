// An answer as it is read: claims with citations and verdicts, what disagrees, and what was tried where the answer is no.

import { citeButton, flaggedNote, quotedWords, verdictMark, VERDICTS } from "./citations.js";
import { opensDetails } from "./claim_details.js";
import { at, query } from "../lib/api.js";
import { add, count, dotted, el, oneLine, plural } from "../lib/dom.js";
import { editedMark, figureMark, reviewedBy } from "./review_status.js";
import { recheckView } from "./recheck.js";
import { badge, figureCell, grid, icon, region } from "../lib/ui.js";
import { tableBox } from "../documents/data_table.js";
import { tools } from "./answer_actions.js";

const BETWEEN_VALUES = " / ";

/** The answer of a delivered run. `context` opens documents and the evidence. */
export function answerView(/** @type {RunView} */ run, /** @type {TurnContext} */ context, /** @type {Child} */ how = null) {
  const shown = answerBody(/** @type {AnswerView} */ (run.answer), { ...context, run: run.id });
  const by = reviewedBy(run);
  if (by) shown.prepend(by);
  const stands = recheckView(run.recheck, context.app);
  if (run.recheck?.standing === "holds") return add(shown, stands, how, tools(run, context));
  if (stands) shown.prepend(stands);
  return add(shown, how, tools(run, context));
}

/** An answer as it is read, without what can be done with it. */
export function answerBody(/** @type {AnswerView} */ answer, /** @type {Context} */ context) {
  const cited = new Map(answer.citations.map((each) => [each.number, each]));
  const claims = answer.blocks.flatMap((block) => /** @type {Claim[]} */ (block.claims));
  claims.forEach((claim, place) => (claim.place = place));
  return el(
    "div",
    { class: ["answer", answer.outcome] },
    label(answer),
    missing(answer),
    answer.said ? el("div", { class: "direct-answer prose" }, ...paragraphs(answer.said)) : null,
    ...(answer.judged ? answer.blocks.map((block) => blockView(block, cited, context)) : []),
    answer.judged ? tally(claims) : stated(claims, cited, context),
    near(answer, cited, context),
    ...answer.extracts.map((extract) => extractView(extract, cited, context)),
    ...answer.figures.map((figure) => figureView(figure, context)),
    answer.conflicts.length ? conflicts(answer, cited, context) : null,
    beside(answer),
    searched(answer),
    answer.citations.length ? sources(answer, cited, context) : null,
  );
}

/** A figure that the answer is about, cut out of its page. Pressed, its document opens at the caption. */
export function figureView(/** @type {FigureView} */ figure, /** @type {Context} */ context) {
  const name = figure.name || "Figure";
  const picture = el("img", {
    alt: oneLine(figure.caption),
    loading: "lazy",
    decoding: "async",
    src: query(at("api", "documents", figure.document, "figures", String(figure.n)), { width: 1200 }),
  });
  const node = el(
    "figure",
    { class: "cited-figure" },
    el(
      "button",
      { type: "button", "aria-label": `${name}, page ${figure.page}. Open the page`, on: { click: (event) => context.openDocument(figure, event.currentTarget) } },
      picture,
    ),
    el("figcaption", { class: "small muted", dir: "auto" }, dotted(oneLine(figure.caption), `page ${figure.page}`)),
  );
  picture.addEventListener("error", () => node.remove());
  return node;
}

function label(/** @type {AnswerView} */ answer) {
  if (!answer.label) return null;
  const [kind, drawn] = {
    answered: ["good", "check"],
    direct: ["info", "info"],
    partial: ["warn", "half"],
    abstained: ["", "search"],
  }[answer.outcome];
  return el("p", { class: ["note", "label", kind] }, icon(drawn), el("strong", {}, answer.label));
}

/** What the answer does not give, in the open. */
function missing(/** @type {AnswerView} */ answer) {
  return answer.gaps.length ? el("p", { class: "missing", dir: "auto" }, `Missing: ${answer.gaps.map(oneLine).join("; ")}.`) : null;
}

function paragraphs(/** @type {string} */ words) {
  return words
    .split(/\n\s*\n/)
    .filter((each) => each.trim())
    .map((each) => el("p", {}, each.trim()));
}

function blockView(/** @type {BlockView} */ block, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const heading = block.heading ? el("h3", {}, block.heading) : null;
  const opinion = block.opinion ? badge("Opinion", "info", { title: "A judgement, not a finding" }) : null;
  return el(
    "section",
    { class: ["block", block.opinion && "opinion"] },
    heading || opinion ? el("div", { class: "block-head" }, heading, opinion) : null,
    block.form === "table" ? tableOf(block, cited, context) : claimsOf(block, cited, context),
    block.form === "list" ? null : factsOf(block.claims),
  );
}

function claimsOf(/** @type {BlockView} */ block, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const own = (/** @type {Claim} */ claim) => {
    const source = claim.quotation && claim.citations.length === 1 ? cited.get(claim.citations[0]) : null;
    const marked = marks(claim, cited, context);
    return source?.table ? [quotedWords(source), marked] : ending(claim, marked);
  };
  const quoted = block.claims.some((claim) => claim.quotation);
  if (block.form === "list") {
    return el(
      "ul",
      { class: ["claims", quoted && "quoted"] },
      ...block.claims.map((claim) => el("li", { class: ["claim", claim.verdict] }, ...own(claim), factsOf([claim]))),
    );
  }
  if (quoted) return el(
    "blockquote",
    { class: ["claim", "quote", block.claims[0].verdict] },
    ...block.claims.flatMap(own),
  );
  const line = el("p", { class: "prose claims" });
  block.claims.forEach((claim, place) => add(
    line,
    place ? " " : null,
    el("span", { class: ["claim", claim.verdict] }, ...own(claim)),
  ));
  return line;
}

/** What the cells are that figures are from, always in sight. */
function factsOf(/** @type {ClaimView[]} */ claims) {
  const lines = [...new Set(claims.flatMap((claim) => claim.facts))];
  return lines.length ? el("ul", { class: "facts small figures" }, ...lines.map((line) => el("li", { dir: "auto" }, line))) : null;
}

/** A claim's words, the last of them on one line with its marks. */
function ending(/** @type {Claim} */ claim, /** @type {Child} */ marked) {
  const text = claim.quotation ? `“${claim.text}”` : claim.text;
  const cut = text.lastIndexOf(" ") + 1;
  if (text.length - cut > 24 || claim.citations.length > 4) return [text, marked];
  return [text.slice(0, cut), el("span", { class: "nowrap" }, text.slice(cut), marked)];
}

/** Citations and verdict, held together at the end of a claim. The verdict opens to what the claim rests on. */
function marks(/** @type {Claim} */ claim, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const own = claim.citations.flatMap((number) => cited.get(number) ?? []);
  return el(
    "span",
    { class: "marks" },
    ...own.map((source) => citeButton(source, context.openDocument)),
    verdictMark(claim, false, (mark) => opensDetails(mark, claim, own, context), own),
    claim.edited ? editedMark(claim.edited) : null,
    claim.dispute ? badge("two judgements differ", "warn") : null,
    figureMark(claim),
    claim.rests_on_flagged ? badge("rests only on what reads like an instruction", "warn") : null,
  );
}

function tableOf(/** @type {BlockView} */ block, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const width = Math.max(...block.claims.map((claim) => claim.row.length));
  return region(block.columns.join(", ") || "Table", el(
    "table",
    {},
    block.columns.length
      ? el("thead", {}, el("tr", {}, ...[...block.columns, "Sources"].map((name) => el("th", { scope: "col" }, name))))
      : null,
    el(
      "tbody",
      {},
      ...block.claims.map((claim) =>
        el(
          "tr",
          { class: claim.verdict },
          ...cellsOf(claim.row, width),
          el("td", { class: "nowrap" }, marks(claim, cited, context)),
        ),
      ),
    ),
  ));
}

/** A row's cells: the first names the row, the last of a short one takes the room that is left. */
function cellsOf(/** @type {string[]} */ row, /** @type {number} */ width) {
  if (row.length === 1) return [el("td", { colspan: width }, row[0])];
  return row.map((cell, column) =>
    column === 0
      ? el("th", { scope: "row" }, cell)
      : el("td", { colspan: column === row.length - 1 && row.length < width ? width - column : null }, cell),
  );
}

/** What was computed from tables or from the list of documents. */
function stated(/** @type {Claim[]} */ claims, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const computed = claims.filter((claim) => !claim.quotation);
  return computed.length ? el(
    "div",
    { class: "prose claims" },
    ...computed.map((claim) => el("p", { class: "claim" }, ...ending(claim, marks(claim, cited, context)))),
  ) : null;
}

/** Words of a document in their place; its name opens it at the words that answer. */
function extractView(/** @type {ExtractView} */ extract, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const source = /** @type {CitationView} */ (cited.get(extract.citations[0]));
  const open = (/** @type {Click} */ event) => context.openDocument({ ...source, start: extract.start, end: extract.end }, event.currentTarget);
  return el(
    "figure",
    { class: "extract" },
    el(
      "figcaption",
      {},
      ...extract.citations.map((number) => el("span", { class: "number" }, String(number))),
      el("button", { type: "button", class: "link", dir: "auto", on: { click: open } }, extract.place.replace(/ (?=\d+$)/, "\u00a0")),
      source.flagged ? badge("reads like an instruction", "warn") : null,
    ),
    extract.table
      ? tableBox(extract.table).box
      : el("blockquote", { class: "quote", dir: "auto" }, ...extract.words.map((each) => (each.marked ? el("mark", {}, each.text) : each.text))),
  );
}

/** How many statements stand, in words. */
function tally(/** @type {Claim[]} */ claims) {
  const judged = claims.filter((claim) => claim.verdict);
  if (!judged.length) return null;
  const by = Object.keys(VERDICTS)
    .map((verdict) => [verdict, judged.filter((claim) => claim.verdict === verdict).length])
    .filter(([, many]) => many);
  return el(
    "p",
    { class: "verdict-tally" },
    ...by.map(([verdict, many]) => el(
      "span",
      { class: ["tallied", VERDICTS[verdict].kind] },
      icon(VERDICTS[verdict].sign, 13),
      `${count(many)} ${VERDICTS[verdict].words.toLowerCase()}`,
    )),
    judged.some((claim) => claim.verdict === "supported" && claim.basis !== "figure") ? el("span", { class: "muted" }, `✓ means “${VERDICTS.supported.means}”`) : null,
  );
}

/** One side: the source with its words, or with the value that it gives. */
function quotation(/** @type {Source} */ source, /** @type {Context} */ context, value = "") {
  return el(
    "figure",
    { class: "quoted-side card" },
    value ? el("strong", { dir: "auto" }, value) : quotedWords(source),
    source.flagged ? flaggedNote() : null,
    el(
      "figcaption",
      {},
      el(
        "button",
        { type: "button", class: "link", on: { click: (event) => context.openDocument(source, event.currentTarget) } },
        source.title || source.name,
      ),
      [source.date, source.page ? `page ${source.page}` : ""].filter(Boolean).map((each) => ` · ${each}`),
    ),
  );
}

function conflicts(/** @type {AnswerView} */ answer, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  return el(
    "section",
    { class: "conflicts" },
    el("h3", {}, icon("warning"), answer.judged ? "The sources disagree" : "These differ"),
    ...answer.conflicts.map((each) => {
      const values = each.about.split(BETWEEN_VALUES);
      const short = !answer.judged && values.length === 2; // the words stand above
      return el(
        "div",
        { class: "conflict" },
        each.about && !short ? el("p", { class: "about" }, each.about) : null,
        el(
          "div",
          { class: "sides" },
          ...[each.left, each.right]
            .map((number, side) => ({ source: cited.get(number), value: short ? values[side] : "" }))
            .map(({ source, value }) => source && quotation(source, context, value)),
        ),
      );
    }),
  );
}

/** What came nearest: statements of a model. Quotations are below, in their place. */
function near(/** @type {AnswerView} */ answer, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const claims = answer.near.filter((claim) => !claim.quotation);
  if (!answer.near.length || !(answer.judged || claims.length)) return null;
  return el(
    "section",
    { class: "near" },
    answer.judged ? el("h3", {}, "The nearest that was found") : null,
    el(
      "ul",
      { class: "claims" },
      ...claims.map((claim) => el("li", { class: "claim" }, ...ending(claim, marks(claim, cited, context)))),
    ),
  );
}

/** Remarks that are not shown in a form of their own. */
function beside(/** @type {AnswerView} */ answer) {
  const said = answer.remarks;
  return said.length ? el("ul", { class: "remarks" }, ...said.map((remark) => el("li", {}, remark))) : null;
}

function searched(/** @type {AnswerView} */ answer) {
  if (answer.outcome === "direct" || !(answer.searched.length || answer.unread.length)) return null;
  return el(
    "details",
    { class: "fold searched" },
    el("summary", {}, `What was searched (${plural(answer.searched.length, "search", "searches")})`),
    el(
      "div",
      { class: "fold-body" },
      answer.searched.length
        ? grid(
          "What was searched",
          ["Searched for", el("th", { scope: "col", class: "figure" }, "Found"), el("th", { scope: "col", class: "figure" }, "Kept")],
          answer.searched.map((each) => [el("td", {}, oneLine(each.query)), figureCell(count(each.found)), figureCell(count(each.kept))]),
          "",
        )
        : null,
      answer.stopped ? el("p", { class: "muted" }, `The search ended because ${answer.stopped}.`) : null,
      answer.unread.length ? unread(answer.unread) : null,
    ),
  );
}

function unread(/** @type {string[]} */ items) {
  const few = items.slice(0, 12);
  return el(
    "div",
    { class: "named" },
    el("p", { class: "legend" }, "Could not be read, so not searched"),
    el(
      "ul",
      { class: "chips" },
      ...few.map((item) => el("li", { class: "chip" }, item)),
      items.length > few.length ? el("li", { class: "chip" }, `and ${count(items.length - few.length)} more`) : null,
    ),
    el("p", { class: "small" }, el("a", { href: "#/documents" }, "See why in Documents")),
  );
}

/** Each source once, and of it each page once, with everything that is cited of it. */
function sources(/** @type {AnswerView} */ answer, /** @type {Cited} */ cited, /** @type {Context} */ context) {
  const own = (/** @type {number[]} */ numbers) => numbers.flatMap((number) => cited.get(number) ?? []);
  const buttons = (/** @type {number[]} */ numbers) => own(numbers).map((each) => citeButton(each, context.openDocument));
  return el(
    "details",
    { class: "fold sources" },
    el("summary", {}, plural(answer.sources.length, "source")),
    el(
      "ul",
      { class: "fold-body source-list" },
      ...answer.sources.map((source) => {
        const [first] = own(source.places[0].citations);
        return el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "link", on: { click: (event) => context.openDocument(first, event.currentTarget) } },
            source.title || source.name,
          ),
          el("p", { class: "small muted" }, dotted(source.authors.join(", "), source.date, source.name)),
          ...[...Map.groupBy(source.places, (place) => place.page)].map(([page, places]) => el(
            "div",
            { class: "cited-page" },
            page ? el("p", { class: "small muted" }, `Page ${page}`) : null,
            ...places.map((place) => citedPlace(place, buttons, own(place.citations).some((each) => each.flagged))),
          )),
        );
      }),
    ),
  );
}

function citedPlace(/** @type {CitedPlace} */ place, /** @type {(numbers: number[]) => Child[]} */ buttons, /** @type {boolean} */ flagged) {
  return el(
    "div",
    { class: "cited-place" },
    place.table ? null : el("p", {}, ...buttons(place.citations), " ", el("q", { dir: "auto" }, oneLine(place.quote))),
    place.table ? tableBox(place.table, { marks: place.rows.map(buttons) }).box : null,
    flagged ? flaggedNote() : null,
  );
}
