// An account that is done, read like an answer: disagreements first, then the text with its citations, the map, and the coverage.

import { at, get } from "../lib/api.js";
import { answerBody, figureView } from "../answers/answer.js";
import { citeButton, quotedWords } from "../answers/citations.js";
import { sidePanel } from "../answers/panel.js";
import { recheckView } from "../answers/recheck.js";
import { reviewedBy } from "../answers/review_status.js";
import { count, el, fill, money, plural, seconds } from "../lib/dom.js";
import { failed, icon, loading, segments } from "../lib/ui.js";
import { relationMap } from "./relation_map.js";
import { standing } from "../screens/runs.js";

const DISAGREE = "Where they disagree"; // the heading of contradictions in a digest: they stand above
const SHOWN = 20; // relations of one type at first
/** @type {Words} */
const AUDIENCES = { expert: "Expert", plain: "Plain language", executive: "Executive" };

export async function showDelivered(/** @type {HTMLElement} */ root, /** @type {RunView} */ run, /** @type {App} */ app) {
  const path = at("api", "synthesis", run.id);
  const name = `account-${run.id}`;
  const body = el("div", { class: "account-body" }, loading());
  const page = el(
    "div",
    { class: "talk account" },
    el(
      "header",
      {},
      el("a", { class: "crumb small", href: "#/synthesis" }, icon("left", 14), "Synthesis"),
      el(
        "div",
        { class: "page-head" },
        el(
          "div",
          {},
          el("h1", { dir: "auto" }, run.question),
          el(
            "p",
            { class: "trace-state" },
            standing(run),
            el("span", { class: "small muted figures" }, spent(run)),
            el("a", { class: "small", href: `#${at("run", run.id)}` }, "Its trace"),
          ),
          reviewedBy(run),
          recheckView(run.recheck, app),
        ),
        el(
          "div",
          { class: "actions" },
          saved("HTML", `${path}/page`, `${name}.html`),
          saved("Markdown", `${path}/markdown`, `${name}.md`),
          saved("JSON", path, `${name}.json`),
        ),
      ),
    ),
    body,
  );
  const screen = el("div", { class: "with-side-panel" }, page);
  const panel = sidePanel(screen);
  fill(root, screen);
  const load = async () => {
    try {
      fill(body, ...parts(/** @type {Recorded["Synthesis"]} */ (await get(path)), run, { app, openDocument: panel.openDocument }));
    } catch (problem) {
      if (problem.status !== 401) fill(body, failed(problem, load));
      if (!("status" in problem)) console.error(problem);
    }
  };
  await load();
  return panel.close;
}

function parts(/** @type {Recorded["Synthesis"]} */ account, /** @type {RunView} */ run, /** @type {Context} */ context) {
  const labels = new Map(account.brief.documents.map((id, place) => [id, `D${place + 1}`]));
  const titles = Object.fromEntries(account.documents.map((each) => [each.doc_id, each.title]));
  return [
    account.notes.length ? el(
      "ul",
      { class: "account-notes" },
      ...account.notes.map((words) => el("li", { class: "note" }, icon("info"), el("span", {}, words))),
    ) : null,
    disagreements(account, labels, titles, context),
    text(account, run, context),
    account.left_out?.length ? el(
      "details",
      { class: "fold" },
      el("summary", {}, `What was left out (${count(account.left_out.length)})`),
      el("ul", { class: "bullets fold-body" }, ...account.left_out.map((words) => el("li", { dir: "auto" }, words))),
    ) : null,
    relations(account, labels, titles, context),
    coverage(account, labels, titles),
  ];
}

/** Where the documents contradict each other, before anything else: both sides in their own words. */
function disagreements(/** @type {Recorded["Synthesis"]} */ account, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles, /** @type {Context} */ context) {
  const found = account.relations.filter((each) => each.type === "contradiction");
  if (!found.length) return null;
  return el(
    "section",
    { class: "conflicts", "aria-label": "Where the documents disagree" },
    el("h2", {}, icon("warning"), found.length === 1 ? "The documents disagree in one respect" : `The documents disagree in ${count(found.length)} respects`),
    ...found.map((each) => relation(each, labels, titles, context)),
  );
}

/** The text, for the audience that is chosen. */
function text(/** @type {Recorded["Synthesis"]} */ account, /** @type {RunView} */ run, /** @type {Context} */ context) {
  const holder = el("div", {});
  const versions = account.translations ?? [];
  const told = account.relations.some((each) => each.type === "contradiction"); // above, with both sides
  const once = (/** @type {NonNullable<RunView["answer"]>} */ answer) => ({ ...answer, conflicts: [], blocks: answer.blocks.filter((each) => each.heading !== DISAGREE) });
  const expert = () => (run.answer ? answerBody(told ? once(run.answer) : run.answer, context) : null);
  const show = (/** @type {string} */ audience) => {
    const version = versions.find((each) => each.audience === audience);
    fill(holder, version ? translated(version, run, context) : expert());
  };
  const names = ["expert", ...versions.map((each) => each.audience).filter((each) => each !== "expert")];
  show(names[0]);
  return el(
    "section",
    { "aria-label": "The account" },
    names.length > 1
      ? segments("For whom", Object.fromEntries(names.map((each) => [each, [AUDIENCES[each] ?? each]])), names[0], show)
      : null,
    holder,
  );
}

/** A version for an audience: the same claims and citations in other words. */
function translated(/** @type {Recorded["Translation"]} */ version, /** @type {RunView} */ run, /** @type {Context} */ context) {
  const cited = new Map();
  for (const each of run.answer?.citations ?? []) if (!cited.has(each.key)) cited.set(each.key, each);
  return el(
    "div",
    { class: "answer" },
    ...version.paragraphs.map((paragraph) => el(
      "p",
      { class: "prose", dir: "auto" },
      ...paragraph.sentences.flatMap((sentence) => [
        sentence.text,
        ...sentence.cites.filter((key) => cited.has(key)).map((key) => citeButton(cited.get(key), context.openDocument)),
        " ",
      ]),
      paragraph.analogy ? el("span", { class: "muted" }, `As an image: ${paragraph.analogy}`) : null,
    )),
    ...(run.answer?.figures ?? []).map((figure) => figureView(figure, context)),
  );
}

/** A relation with the words of both documents; each opens its document at these words. */
function relation(/** @type {Recorded["Relation"]} */ each, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles, /** @type {Context} */ context) {
  const side = (/** @type {Recorded["RelationSide"]} */ { doc_id: id, quote }) => {
    const source = { document: id, title: titles[id] || "Untitled", start: quote.start, end: quote.end, quote: quote.text };
    return el(
      "figure",
      { class: "quoted-side card" },
      quotedWords(source),
      el(
        "figcaption",
        {},
        el("span", { class: "doc-label" }, labels.get(id) ?? ""),
        " ",
        el("button", { type: "button", class: "link", dir: "auto", on: { click: (event) => context.openDocument(source, event.currentTarget) } }, source.title),
      ),
    );
  };
  return el("div", { class: "conflict" }, el("p", { class: "about", dir: "auto" }, each.reason), el("div", { class: "sides" }, side(each.left), side(each.right)));
}

function saved(/** @type {string} */ words, /** @type {string} */ href, /** @type {string} */ name) {
  return el("a", { class: "button small", href, download: name, "aria-label": `Download as ${words}` }, icon("download"), words);
}

function spent(/** @type {RunView} */ run) {
  const { calls, tokens_in, tokens_out, money: cost } = run.usage;
  const asked = calls ? [plural(calls, "model call"), `${count(tokens_in + tokens_out)} tokens`, cost ? money(cost) : "no charge"] : ["no model"];
  return [...asked, seconds(run.seconds), new Date(run.started).toLocaleDateString("en", { dateStyle: "medium" })].join(" · ");
}

function coverage(/** @type {Recorded["Synthesis"]} */ account, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles) {
  const heard = account.ledger.filter((row) => row.evidence).length;
  const all = account.ledger.length;
  const deep = account.brief.pipeline === "synthesis";
  /** @type {LedgerColumn[]} */
  const columns = [["evidence", "Quoted"], ...(deep ? [/** @type {LedgerColumn} */ (["insights", "Insights"])] : []), ["claims", "Claims"], ...(deep ? [/** @type {LedgerColumn} */ (["relations", "Related"])] : [])];
  return el(
    "section",
    { class: "card", "aria-labelledby": "coverage" },
    el("h2", { id: "coverage" }, "Coverage"),
    el("p", { class: "small muted" }, heard === all ? `All ${plural(all, "document")} are heard.` : `${heard} of ${plural(all, "document")} are heard.`),
    el(
      "div",
      { class: "ledger-wrap", tabindex: "0", role: "region", "aria-label": "Coverage, document by document" },
      el(
        "table",
        { class: "ledger" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "Document"),
            ...columns.map(([, words]) => el("th", { scope: "col", class: "figure" }, words)),
          ),
        ),
        el("tbody", {}, ...account.ledger.map((row) => ledgerRow(row, columns, labels, titles))),
      ),
    ),
  );
}

function ledgerRow(/** @type {Recorded["Coverage"]} */ row, /** @type {LedgerColumn[]} */ columns, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles) {
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el(
        "span",
        { class: "ledger-document" },
        el("span", { class: "doc-label" }, labels.get(row.doc_id) ?? ""),
        el(
          "a",
          { class: "ledger-title", href: `#${at("document", row.doc_id)}`, dir: "auto", title: titles[row.doc_id] || null },
          titles[row.doc_id] || "Untitled",
        ),
      ),
      row.reason ? el("span", { class: "small ledger-reason" }, row.reason) : null,
    ),
    ...columns.map(([key]) => el("td", { class: ["figure", !row[key] && key !== "relations" && "nothing"] }, count(row[key] ?? 0))),
  );
}

function relations(/** @type {Recorded["Synthesis"]} */ account, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles, /** @type {Context} */ context) {
  if (account.brief.pipeline !== "synthesis") return null;
  /** @type {Map<string, Recorded["Relation"][]>} */
  const by = new Map();
  for (const each of account.relations) by.set(each.type, [...(by.get(each.type) ?? []), each]);
  const types = [...by].sort((a, b) => Number(b[0] === "contradiction") - Number(a[0] === "contradiction") || b[1].length - a[1].length);
  return el(
    "section",
    { class: "card", "aria-labelledby": "relations" },
    el("h2", { id: "relations" }, "How the documents relate"),
    account.diagnostics.reading ? el("p", { class: "small muted" }, account.diagnostics.reading) : null,
    types.length ? map() : el("p", { class: "small muted" }, "None that quotations from both documents support."),
    // The legend of the map; each entry opens to its relations.
    types.length ? el("div", { class: "map-legend", role: "group", "aria-label": "Legend, and the relations of each kind" }, ...types.map(([type, all]) => typeGroup(type, all))) : null,
  );

  /** Contradictions and extensions, if there are any; every relation on demand. */
  function map() {
    const first = account.relations.filter(({ type }) => type === "contradiction" || type === "extension");
    const holder = el("div", {});
    const show = (/** @type {Recorded["Relation"][]} */ shown) => {
      const rest = account.relations.length - shown.length;
      const more = el("button", { class: "link small", type: "button", on: { click: () => show(account.relations) } }, `Show ${plural(rest, "other relation")} on the map`);
      fill(holder, relationMap(shown, labels, titles), rest ? more : null);
    };
    show(first.length ? first : account.relations);
    return holder;
  }

  /** The relations of one type; what is inside is made when it is opened. */
  function typeGroup(/** @type {string} */ type, /** @type {Recorded["Relation"][]} */ all) {
    const box = el("details", { class: "fold tie-group" }, el("summary", {}, el("span", { class: "tie", dataset: { type } }, type), ` ${count(all.length)}`));
    box.addEventListener("toggle", () => {
      if (!box.open || box.childElementCount > 1) return;
      const list = el("div", {}, ...all.slice(0, SHOWN).map((each) => relation(each, labels, titles, context)));
      box.append(list);
      if (all.length <= SHOWN) return;
      const more = el("button", { type: "button", class: "link small" }, `Show ${plural(all.length - SHOWN, "more relation")}`);
      more.addEventListener("click", () => {
        list.append(...all.slice(SHOWN).map((each) => relation(each, labels, titles, context)));
        more.remove();
      });
      box.append(more);
    });
    return box;
  }
}
