// The list of documents: searched, filtered, paged while one scrolls, opened, and removed.

import { at, get, post, query } from "../lib/api.js";
import { count, dotted, el, fill, plural } from "../lib/dom.js";
import { erase } from "./erase_dialog.js";
import { switchDocuments, tagDocuments } from "./marks.js";
import { paged } from "../lib/paged_list.js";
import { afterTyping, badge, button, icon, iconButton } from "../lib/ui.js";

const PAGE = 60;
const STATES = [
  ["", "All"],
  ["ready", "Ready"],
  ["pending", "Waiting"],
  ["unreadable", "Could not be read"],
  ["off", "Switched off"],
];
/** @type {Words} */
const KINDS = { markdown: "Markdown", text: "Text", email: "E-mail", docx: "Word", pptx: "Slides", xlsx: "Excel", "": "" };
/** @type {Table} */
const LOOKS = { ready: ["check", "ready", "good"], pending: ["clock", "waiting", ""], unreadable: ["close", "unreadable", "bad"], off: ["minus", "off", ""] };

/** The list, for one base or for all; `alone` says that there is but one. `none()` is what an empty one shows; `changed()` hears of removals. */
export function library(/** @type {HTMLElement} */ holder, /** @type {App} */ app, /** @type {{ base?: string; alone?: boolean; mayRemove?(base: string): boolean; none(): Child; changed(): void }} */ { base = "", alone = false, mayRemove = () => false, none, changed }) {
  const selected = new Map(); // id → title
  const search = el("input", { type: "search", placeholder: "Title, file name, author or tag", "aria-label": "Search documents" });
  const state = el("select", { "aria-label": "Which documents" }, ...STATES.map(([value, words]) => el("option", { value }, words)));
  const countNode = el("p", { class: "library-count small muted", role: "status" });
  const picked = el("div", { class: "picked", hidden: true });
  const holds = el("div", { class: "library-list" });
  const bar = el("div", { class: "library-bar" }, search, state, countNode);
  holder.append(bar, picked, holds);

  const pages = paged(holds, {
    label: "Documents",
    fetch: async (after) => {
      const found = await get(query("/api/documents", { base, q: search.value.trim(), state: state.value, after, limit: PAGE }));
      return { items: found.documents, next: found.next, total: found.total };
    },
    row,
    none: () => {
      if (search.value.trim() || state.value) return el(
        "p",
        { class: "state slim" },
        "No document fits. ",
        el("button", { type: "button", class: "link", on: { click: everything } }, "Show all"),
      );
      return none();
    },
    onCount: (total) => {
      const all = !search.value.trim() && !state.value;
      bar.hidden = all && total === 0;
      countNode.textContent = all ? plural(total, "document") : `${count(total)} found`;
    },
  });

  function everything() {
    search.value = state.value = "";
    search.focus();
    pages.restart();
  }

  function row(/** @type {DocumentSummary} */ document) {
    const title = document.title || document.name;
    const mine = mayRemove(document.base);
    const box = mine ? el("input", { type: "checkbox", checked: selected.has(document.id), "aria-label": `Select ${title}` }) : null;
    box?.addEventListener("change", () => pick(document.id, title, box.checked));
    const [sign, words, kind] = LOOKS[document.state] ?? ["info", document.state, ""];
    return el(
      "li",
      { class: ["row document-row", !mine && "read-only"], dataset: { id: document.id } },
      el("label", { class: "document-pick" }, box),
      el(
        "div",
        { class: "grow" },
        ["ready", "off"].includes(document.state)
          ? el("a", { class: "row-title", href: `#${at("document", document.id)}`, dir: "auto" }, title)
          : el("span", { class: "row-title", dir: "auto" }, title),
        el("p", { class: "row-more", dir: "auto" }, under(document, base || alone)),
        document.tags.length ? el("p", { class: "document-tags" }, ...document.tags.map((tag) => badge(tag, "tag", { dir: "auto" }))) : null,
        document.held ? heldNote(document) : null,
        document.state === "unreadable" && document.why ? el("p", { class: "row-more bad" }, document.why) : null,
        ...(document.state === "ready" ? document.warnings.map((warning) => el("p", { class: "row-more warn" }, warning)) : []),
      ),
      el(
        "span",
        { class: "document-facts small muted figures" },
        el("span", {}, KINDS[document.kind] ?? document.kind.toUpperCase()),
        el("span", {}, document.date ?? ""),
        el("span", {}, document.pages > 1 ? plural(document.pages, "page") : ""),
      ),
      el("span", { class: "document-state" }, badge([icon(sign, 13), words], kind)),
      mine ? iconButton("trash", `Remove ${title}`, () => remove(new Map([[document.id, title]]))) : null,
    );
  }

  /** Why a document is restricted until its owner decides, and both decisions. */
  function heldNote(/** @type {DocumentSummary} */ document) {
    const decide = (/** @type {boolean} */ keep) => async () => {
      await post(`/api/documents/${document.id}/held`, { keep });
      app.announce(keep ? "It stays restricted" : "Whoever reads its knowledge base may read it now");
      pages.restart();
    };
    return el(
      "p",
      { class: "row-more warn" },
      `${document.held} `,
      button("Keep it restricted", { kind: "small", on: decide(true) }),
      " ",
      button("Open it", { kind: "small", on: decide(false) }),
    );
  }

  function pick(/** @type {string} */ id, /** @type {string} */ title, /** @type {boolean} */ on) {
    if (on) selected.set(id, title);
    else selected.delete(id);
    showPicked();
  }

  function showPicked() {
    picked.hidden = !selected.size;
    fill(picked);
    if (!selected.size) return;
    picked.append(
      el("span", { role: "status" }, `${plural(selected.size, "document")} selected`),
      button("Switch off", { kind: "small", on: () => marked(switchDocuments(app, [...selected.keys()], true)) }),
      button("Switch on", { kind: "small", on: () => marked(switchDocuments(app, [...selected.keys()], false)) }),
      button("Tags…", { kind: "small", on: () => marked(tagDocuments(app, pages.items.filter((each) => selected.has(each.id)))) }),
      button("Remove…", { kind: "danger small", on: () => remove(new Map(selected)) }),
      button(`Select all ${count(pages.shown)} shown`, { kind: "quiet small", on: () => all(true) }),
      button("Select none", { kind: "quiet small", on: () => all(false) }),
    );
  }

  function all(/** @type {boolean} */ on) {
    selected.clear();
    if (on) for (const each of pages.items) if (mayRemove(each.base)) selected.set(each.id, each.title || each.name);
    pages.redraw();
    showPicked();
  }

  async function remove(/** @type {Map<string, string>} */ wanted) {
    const gone = await erase(app, wanted);
    if (!gone) return;
    for (const id of wanted.keys()) selected.delete(id);
    showPicked();
    pages.restart();
    changed();
  }

  async function marked(/** @type {Promise<unknown>} */ work) {
    if (!(await work)) return;
    selected.clear();
    showPicked();
    pages.restart();
    changed();
  }

  const quiet = afterTyping(search, () => pages.restart());
  state.addEventListener("change", () => pages.restart());
  pages.restart();
  return {
    refresh: () => pages.restart(),
    /** Whether nobody is in it, so that it may change by itself. */
    get free() {
      return pages.shown <= PAGE && !selected.size && !holds.contains(document.activeElement);
    },
    close() {
      quiet();
      pages.close();
    },
  };
}

function under(/** @type {DocumentSummary} */ document, /** @type {unknown} */ known) {
  return dotted(
    document.title && document.title !== document.name ? document.name : "",
    [document.organisation, document.kind_of_document, document.period].filter(Boolean).join(", "),
    document.authors.join(", "),
    known ? "" : `in ${document.base}`,
  );
}
