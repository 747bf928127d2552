// The list of documents: searched, filtered, paged while one scrolls, opened, and removed.

import { at, get, post, query } from "../lib/api.js";
import { count, dotted, el, fill, plural } from "../lib/dom.js";
import { erase } from "./erase_dialog.js";
import { askTags, markAll, markedNote } from "./marks.js";
import { paged } from "../lib/paged_list.js";
import { takeUp } from "./uploads.js";
import { afterTyping, badge, button, icon, iconButton, spinner } from "../lib/ui.js";

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
  const tag = el("select", { "aria-label": "With the tag", hidden: true });
  let known = /** @type {readonly TagCount[]} */ ([]);
  let total = 0;
  let every = false; // all that match are meant, also those that were not fetched
  const countNode = el("p", { class: "library-count small muted", role: "status" });
  const picked = el("div", { class: "picked", hidden: true });
  const holds = el("div", { class: "library-list" });
  const bar = el("div", { class: "library-bar" }, search, state, tag, countNode);
  const said = el("div", { class: "marked", role: "status" });
  holder.append(bar, picked, said, holds);
  const fits = () => ({ base, q: search.value.trim(), state: /** @type {any} */ (state.value || undefined), tag: tag.value });
  const narrowed = () => Boolean(search.value.trim() || state.value || tag.value);

  /** The tags that there are, to choose from. */
  async function countTags() {
    const found = await get(query("/api/document-tags", { base })).catch(() => null);
    if (!found) return;
    known = found.tags;
    const chosen = known.some((each) => each.tag === tag.value) ? tag.value : "";
    const gone = chosen !== tag.value;
    fill(tag, el("option", { value: "" }, "Any tag"), ...known.map((each) => el("option", { value: each.tag }, `${each.tag} (${count(each.documents)})`)));
    tag.value = chosen;
    tag.hidden = !known.length;
    if (gone) pages.restart();
  }

  const pages = paged(holds, {
    label: "Documents",
    fetch: async (after) => {
      const found = await get(query("/api/documents", { ...fits(), after, limit: PAGE }));
      return { items: found.documents, next: found.next, total: found.total };
    },
    row,
    none: () => {
      if (narrowed()) return el(
        "p",
        { class: "state slim" },
        "No document fits. ",
        el("button", { type: "button", class: "link", on: { click: everything } }, "Show all"),
      );
      return none();
    },
    onCount: (now) => {
      total = now;
      const all = !narrowed();
      bar.hidden = all && total === 0;
      showPicked();
      countNode.textContent = all ? plural(total, "document") : `${count(total)} found`;
    },
  });

  function everything() {
    search.value = state.value = tag.value = "";
    search.focus();
    pages.restart();
  }

  function row(/** @type {DocumentSummary} */ document) {
    const title = document.title || document.name;
    const mine = mayRemove(document.base);
    const box = mine ? el("input", { type: "checkbox", checked: every || selected.has(document.id), "aria-label": `Select ${title}` }) : null;
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
        document.unread && mine ? ocrNote(document, title) : null,
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

  /** Reads pages that are pictures, at once and for this document alone. */
  function ocrNote(/** @type {DocumentSummary} */ document, /** @type {string} */ title) {
    const answer = el("span", { role: "status" });
    const read = async () => {
      try {
        await post(`/api/documents/${document.id}/ocr`);
        fill(answer, " It is being read.");
        begin.disabled = true;
        await takeUp();
      } catch (problem) {
        if (problem.status !== 401) fill(answer, ` ${problem.message}`);
      }
    };
    const begin = /** @type {HTMLButtonElement} */ (button("Read with OCR", { kind: "small", on: read, "aria-label": `Read ${title} with OCR` }));
    return el("p", { class: "row-more" }, begin, answer);
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
    const were = every;
    if (were) all(true); // from here on those are meant that are shown
    if (on) selected.set(id, title);
    else selected.delete(id);
    if (were) pages.redraw();
    showPicked();
  }

  function showPicked() {
    const many = every ? total : selected.size;
    picked.hidden = !many;
    if (!many) return;
    const meant = () => (every ? { that_fit: fits() } : { ids: [...selected.keys()] });
    const turned = (/** @type {boolean} */ off) => () => marked({ ...meant(), off }, `switched ${off ? "off" : "on"}`);
    const tagged = async () => {
      const given = await askTags(many, known);
      if (given) await marked({ ...meant(), ...given }, given.add ? `tagged ${given.add.join(", ")}` : `without ${given.remove?.join(", ")} now`);
    };
    fill(
      picked,
      el("span", { role: "status" }, every ? `All ${plural(many, "document")} ${narrowed() ? "that match " : ""}selected` : `${plural(many, "document")} selected`),
      button("Switch off", { kind: "small", on: turned(true) }),
      button("Switch on", { kind: "small", on: turned(false) }),
      button("Tags…", { kind: "small", on: tagged }),
      every ? null : button("Remove…", { kind: "danger small", on: () => remove(new Map(selected)) }),
      every || many >= pages.shown ? null : button(`Select all ${count(pages.shown)} shown`, { kind: "quiet small", on: () => all(true) }),
      every || many >= total ? null : button(`Select all ${count(total)}${narrowed() ? " that match" : ""}`, { kind: "quiet small", on: () => all(true, true) }),
      button("Select none", { kind: "quiet small", on: () => all(false) }),
    );
  }

  function all(/** @type {boolean} */ on, those = false) {
    every = those;
    selected.clear();
    if (on && !every) for (const each of pages.items) if (mayRemove(each.base)) selected.set(each.id, each.title || each.name);
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

  async function marked(/** @type {MarkDocumentsRequest} */ request, /** @type {string} */ words) {
    fill(said, el("p", { class: "note" }, spinner(), "Changing them…"));
    const made = await markAll(app, request);
    fill(said, made ? markedNote(app, made, words, () => again(el("p", { class: "note" }, "As it was again."))) : null);
    if (made) again();
  }

  function again(/** @type {Child} */ words = null) {
    if (words) fill(said, words);
    every = false;
    selected.clear();
    showPicked();
    pages.restart();
    countTags();
    changed();
  }

  const narrow = () => {
    if (every) all(false); // other documents match now
    pages.restart();
  };
  const quiet = afterTyping(search, narrow);
  for (const each of [state, tag]) each.addEventListener("change", narrow);
  pages.restart();
  countTags();
  return {
    refresh: () => pages.restart(),
    /** Whether nobody is in it, so that it may change by itself. */
    get free() {
      return pages.shown <= PAGE && !selected.size && !every && !holds.contains(document.activeElement);
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
