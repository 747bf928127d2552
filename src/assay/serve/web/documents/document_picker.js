// Which documents: all of some knowledge bases, or those that are picked out of a search. Never loads all of them.

import { get, query } from "../lib/api.js";
import { count, dotted, el, fill, plural } from "../lib/dom.js";
import { paged } from "../lib/paged_list.js";
import { afterTyping, button, iconButton } from "../lib/ui.js";

const PAGE = 50;
const MOST = 2000;
let number = 0;

/** `chosen()` is what the API wants to know; `changed()` hears of every change. */
export function picking(/** @type {BaseView[]} */ bases, /** @type {() => void} */ changed) {
  const filled = bases.filter((base) => base.documents);
  const whole = new Set(filled.length === 1 ? [filled[0].name] : []);
  const picked = new Map(); // id → title
  const name = `from-${++number}`;
  const byBase = el("input", { type: "radio", name, checked: true });
  const byHand = el("input", { type: "radio", name });
  const holder = el("div", { class: "picking" });
  let pages = /** @type {ReturnType<typeof paged> | null} */ (null);

  const fromBases = el(
    "div",
    { class: "picking-bases" },
    ...filled.map((base) => {
      const box = el("input", { type: "checkbox", checked: whole.has(base.name) });
      box.addEventListener("change", () => (box.checked ? whole.add(base.name) : whole.delete(base.name)));
      return el(
        "label",
        { class: "check" },
        box,
        el(
          "span",
          {},
          el("span", { dir: "auto" }, base.name),
          " ",
          el("span", { class: "small muted figures" }, plural(base.documents, "document")),
        ),
      );
    }),
  );

  const search = el("input", { type: "search", class: "picking-search", placeholder: "Title, file name or author", "aria-label": "Search documents to pick" });
  const tray = el("div", { class: "picking-tray", role: "status" });
  const results = el("div", { class: "picking-results", tabindex: "0", role: "region", "aria-label": "Documents to pick from" });
  const fromSearch = el("div", { hidden: true, class: "picking-hand" }, tray, search, results);

  function begin() {
    pages = paged(results, {
      label: "Documents",
      look: "picking-list",
      fetch: async (after) => {
        const found = await get(query("/api/documents", { q: search.value.trim(), state: "ready", after, limit: PAGE }));
        return { items: found.documents, next: found.next, total: found.total };
      },
      row: (document) => {
        const title = document.title || document.name;
        const box = el("input", { type: "checkbox", checked: picked.has(document.id), dataset: { id: document.id } });
        box.addEventListener("change", () => {
          if (box.checked && picked.size >= MOST) box.checked = false;
          else if (box.checked) picked.set(document.id, title);
          else picked.delete(document.id);
          showTray();
        });
        return el(
          "li",
          {},
          el(
            "label",
            { class: "check" },
            box,
            el(
              "span",
              {},
              el("span", { dir: "auto" }, title),
              " ",
              el("span", { class: "small muted" }, dotted(document.date, document.base)),
            ),
          ),
        );
      },
      none: () => el("p", { class: "state slim" }, "No document fits."),
    });
    pages.restart();
    showTray();
  }

  function showTray() {
    const some = [...picked].slice(-6);
    fill(
      tray,
      el("strong", { class: "figures" }, picked.size ? `${count(picked.size)} picked` : "None picked yet"),
      ...some.map(([id, title]) => el(
        "span",
        { class: "chip" },
        el("span", { class: "clip", dir: "auto" }, title),
        iconButton("close", `Leave out ${title}`, () => drop(id)),
      )),
      picked.size > some.length ? el("span", { class: "small muted" }, `and ${picked.size - some.length} more`) : null,
      picked.size ? button("Clear", { kind: "quiet small", on: () => drop(...picked.keys()) }) : null,
    );
  }

  function drop(/** @type {string[]} */ ...ids) {
    for (const id of ids) picked.delete(id);
    for (const box of results.querySelectorAll("input")) box.checked = picked.has(box.dataset.id);
    showTray();
    changed();
  }

  const quiet = afterTyping(search, () => pages?.restart());
  for (const radio of [byBase, byHand]) {
    radio.addEventListener("change", () => {
      fromBases.hidden = byHand.checked;
      fromSearch.hidden = byBase.checked;
      if (byHand.checked && !pages) begin();
    });
  }

  fill(
    holder,
    el("div", { class: "segments" }, el("label", {}, byBase, "Whole knowledge bases"), el("label", {}, byHand, "Picked documents")),
    fromBases,
    fromSearch,
  );
  return {
    node: holder,
    /** How many documents that is. */
    get size() {
      return byHand.checked ? picked.size : filled.reduce((sum, base) => sum + (whole.has(base.name) ? base.documents : 0), 0);
    },
    chosen: () => (byBase.checked ? { documents: [], bases: [...whole] } : { documents: [...picked.keys()], bases: [] }),
    close() {
      quiet();
      pages?.close();
    },
  };
}
