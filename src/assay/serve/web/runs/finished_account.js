// An account that is done: the page itself in a frame of its own, beside it coverage and relations that lead to the documents.

import { at, get } from "../lib/api.js";
import { count, el, fill, money, plural, seconds } from "../lib/dom.js";
import { quotation } from "./facts.js";
import { reviewedBy } from "../answers/review_status.js";
import { failed, icon, loading } from "../lib/ui.js";
import { relationMap } from "./relation_map.js";
import { standing } from "../screens/runs.js";

const SHOWN = 20; // relations of one type at first

export async function showDelivered(root, run) {
  const path = at("api", "synthesis", run.id);
  const side = el("div", { class: "account-side" }, loading("Loading coverage and relations…"));
  const name = `account-${run.id}`;
  fill(
    root,
    el(
      "div",
      { class: "account", dataset: { view: "page" } },
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
              el("a", { class: "small", href: `#/run/${encodeURIComponent(run.id)}` }, "Its trace"),
            ),
            reviewedBy(run),
          ),
          el(
            "div",
            { class: "actions" },
            el("a", { class: "button small", href: `${path}/page`, target: "_blank", rel: "noopener" }, icon("out_of"), "Open in a new tab"),
            saved("HTML", `${path}/page`, `${name}.html`),
            saved("Markdown", `${path}/markdown`, `${name}.md`),
            saved("JSON", path, `${name}.json`),
          ),
        ),
      ),
      views(),
      el(
        "div",
        { class: "account-columns" },
        el(
          "div",
          { class: "account-frame" },
          loading("Setting the page…"),
          el(
            "iframe",
            { class: "account-page", title: "The account", sandbox: "allow-scripts", src: `${path}/page`, referrerpolicy: "no-referrer" },
          ),
        ),
        side,
      ),
    ),
  );
  const load = async () => {
    try {
      fill(side, ...beside(await get(path)));
    } catch (problem) {
      if (problem.status !== 401) fill(side, failed(problem, load));
      if (!("status" in problem)) console.error(problem);
    }
  };
  await load();
}

/** Where there is no room for both side by side: which one. */
function views() {
  const name = "account-view";
  const choose = (event) => {
    event.target.closest(".account").dataset.view = event.target.value;
  };
  return el(
    "div",
    { class: "segments account-views", role: "radiogroup", "aria-label": "What to look at" },
    ...[["page", "The account"], ["side", "Coverage and relations"]].map(([value, words]) => el(
      "label",
      {},
      el("input", { type: "radio", name, value, checked: value === "page", on: { change: choose } }),
      words,
    )),
  );
}

function saved(words, href, name) {
  return el("a", { class: "button small", href, download: name, "aria-label": `Download as ${words}` }, icon("download"), words);
}

function spent(run) {
  const { calls, tokens_in, tokens_out, money: cost } = run.usage;
  const asked = calls ? [plural(calls, "model call"), `${count(tokens_in + tokens_out)} tokens`, cost ? money(cost) : "no charge"] : ["no model"];
  return [...asked, seconds(run.seconds), new Date(run.started).toLocaleDateString("en", { dateStyle: "medium" })].join(" · ");
}

function beside(account) {
  const labels = new Map(account.brief.documents.map((id, place) => [id, `D${place + 1}`]));
  const titles = Object.fromEntries(account.documents.map((each) => [each.doc_id, each.title]));
  return [
    account.notes.length ? el(
      "ul",
      { class: "account-notes" },
      ...account.notes.map((words) => el("li", { class: "note" }, icon("info"), el("span", {}, words))),
    ) : null,
    coverage(account, labels, titles),
    relations(account, labels, titles),
  ];
}

function coverage(account, labels, titles) {
  const heard = account.ledger.filter((row) => row.evidence).length;
  const all = account.ledger.length;
  const deep = account.brief.pipeline === "synthesis";
  const columns = [["evidence", "Quoted"], ...(deep ? [["insights", "Insights"]] : []), ["claims", "Claims"], ...(deep ? [["relations", "Related"]] : [])];
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

function ledgerRow(row, columns, labels, titles) {
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
          { class: "ledger-title", href: `#/document/${encodeURIComponent(row.doc_id)}`, dir: "auto", title: titles[row.doc_id] || null },
          titles[row.doc_id] || "Untitled",
        ),
      ),
      row.reason ? el("span", { class: "small ledger-reason" }, row.reason) : null,
    ),
    ...columns.map(([key]) => el("td", { class: ["figure", !row[key] && key !== "relations" && "nothing"] }, count(row[key]))),
  );
}

function relations(account, labels, titles) {
  if (account.brief.pipeline !== "synthesis") return null;
  const by = new Map();
  for (const each of account.relations) by.set(each.type, [...(by.get(each.type) ?? []), each]);
  const types = [...by].sort((a, b) => Number(b[0] === "contradiction") - Number(a[0] === "contradiction") || b[1].length - a[1].length);
  return el(
    "section",
    { class: "card", "aria-labelledby": "relations" },
    el("h2", { id: "relations" }, "Relations"),
    account.diagnostics.reading ? el("p", { class: "small muted" }, account.diagnostics.reading) : null,
    types.length ? relationMap(account.relations, labels, titles) : el("p", { class: "small muted" }, "None that quotations from both documents support."),
    ...types.map(([type, all]) => typeGroup(type, all, labels, titles)),
  );
}

/** The relations of one type; what is inside is made when it is opened. */
function typeGroup(type, all, labels, titles) {
  const box = el("details", { class: "fold tie-group" }, el("summary", {}, el("span", { class: "tie", dataset: { type } }, type), ` ${count(all.length)}`));
  box.addEventListener("toggle", () => {
    if (!box.open || box.childElementCount > 1) return;
    const list = el("ul", {}, ...all.slice(0, SHOWN).map(one));
    box.append(list);
    if (all.length <= SHOWN) return;
    const more = el("button", { type: "button", class: "link small" }, `Show ${plural(all.length - SHOWN, "more relation")}`);
    more.addEventListener("click", () => {
      list.append(...all.slice(SHOWN).map(one));
      more.remove();
    });
    box.append(more);
  });
  return box;

  function one(each) {
    return el(
      "li",
      { class: "relation" },
      el(
        "p",
        {},
        el("span", { class: "doc-label" }, `${labels.get(each.left.doc_id)} – ${labels.get(each.right.doc_id)}`),
        " ",
        el("span", { dir: "auto" }, each.reason),
      ),
      quotation(each.left.quote, titles),
      quotation(each.right.quote, titles),
    );
  }
}
