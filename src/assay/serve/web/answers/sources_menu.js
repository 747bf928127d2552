// What is searched, chosen beside the question: knowledge bases, documents, dates, metadata. Nothing chosen: everything.

import { get, query } from "../lib/api.js";
import { count, dotted, el, fill, plural } from "../lib/dom.js";
import { afterTyping, icon, iconButton } from "../lib/ui.js";

const FOUND = 8; // documents that a search shows
let names = 0;

/** The menu over `preferences` (`bases`, `sources`: uri → title, `since`, `until`, `undated`, `meta`: name → value); `changed(part)` hears what was chosen. */
export function sourcesMenu(/** @type {BaseView[]} */ bases, /** @type {Preferences} */ preferences, /** @type {Choose} */ changed) {
  const words = el("span", {});
  const chips = el("ul", { class: "chips", "aria-label": "Chosen documents" });
  const results = el("ul", { class: "source-results", "aria-label": "Documents found" });
  const search = el("input", { type: "search", placeholder: "Title, file name, author or tag", "aria-label": "Find documents to choose", autocomplete: "off" });
  const everything = el("p", { class: "hint" }, "Nothing chosen: everything that you may read.");
  const menu = el("details", { class: "menu sources-menu" });

  function set(/** @type {Partial<Preferences>} */ part) {
    changed(part);
    draw();
  }

  function draw() {
    fill(words, inWords(bases, preferences));
    fill(chips, ...[...preferences.sources].map(([uri, title]) => el(
      "li",
      { class: "chip" },
      el("span", { class: "clip", dir: "auto" }, title),
      iconButton("close", `Leave out ${title}`, () => set({ sources: without(preferences.sources, uri) })),
    )));
    chips.hidden = !preferences.sources.size;
    const { bases: from, sources, since, until, meta } = preferences;
    everything.hidden = Boolean(from.length || sources.size || since || until || Object.keys(meta).length);
    for (const box of results.querySelectorAll("input")) box.checked = preferences.sources.has(box.dataset.uri ?? "");
  }

  async function find() {
    const wanted = search.value.trim();
    try {
      const found = await get(query("/api/documents", { q: wanted, state: "ready", limit: FOUND }));
      if (wanted !== search.value.trim()) return;
      fill(results, ...found.documents.map(choice));
      if (found.total > found.documents.length) results.append(el("li", { class: "hint" }, `${count(found.total)} fit; write more of the name.`));
    } catch {
      fill(results); // asked again with the next letter
    }
  }

  function choice(/** @type {DocumentSummary} */ document_) {
    const title = document_.title || document_.name;
    const box = el("input", { type: "checkbox", checked: preferences.sources.has(document_.uri), dataset: { uri: document_.uri } });
    box.addEventListener("change", () => set({
      sources: box.checked ? new Map([...preferences.sources, [document_.uri, title]]) : without(preferences.sources, document_.uri),
    }));
    return el("li", {}, el(
      "label",
      { class: "check" },
      box,
      el("span", { dir: "auto" }, title, " ", el("span", { class: "small muted" }, dotted(document_.date, document_.base))),
    ));
  }

  afterTyping(search, find);
  menu.addEventListener("toggle", () => menu.open && !results.childElementCount && find());
  fill(
    menu,
    el("summary", { class: "button quiet small" }, icon("document"), words),
    el(
      "div",
      { class: "menu-list", role: "group", "aria-label": "What is searched" },
      bases.length > 1 ? fromBases(bases, preferences, set) : null,
      el("fieldset", {}, el("legend", { class: "legend" }, "Documents"), chips, search, results),
      el(
        "fieldset",
        { class: "dates" },
        el("legend", { class: "legend" }, "Dates"),
        date("since", "Dated from", preferences, set),
        date("until", "to", preferences, set),
        undatedToo(preferences, set),
      ),
      el(
        "fieldset",
        { class: "dates" },
        el("legend", { class: "legend" }, "Only documents with"),
        ...[["tag", "Tag"], ["author", "Author"], ["organisation", "Organisation"], ["kind", "Kind"]].map(([name, words_]) => known(name, words_, preferences, set)),
      ),
      everything,
    ),
  );
  draw();
  return menu;
}

function fromBases(/** @type {BaseView[]} */ bases, /** @type {Preferences} */ preferences, /** @type {Choose} */ set) {
  return el(
    "fieldset",
    { "aria-label": "Knowledge bases to search" },
    el("legend", { class: "legend" }, "Knowledge bases"),
    ...bases.map((base) => {
      const box = el("input", { type: "checkbox", checked: preferences.bases.includes(base.name) });
      box.addEventListener("change", () => set({
        bases: box.checked ? [...preferences.bases, base.name] : preferences.bases.filter((other) => other !== base.name),
      }));
      return el(
        "label",
        { class: "check" },
        box,
        el(
          "span",
          {},
          base.name,
          el("span", { class: "small muted" }, ` ${plural(base.documents, "document")}`),
          base.description ? el("span", { class: "small muted base-says" }, base.description) : null,
        ),
      );
    }),
  );
}

function date(/** @type {"since" | "until"} */ name, /** @type {string} */ words, /** @type {Preferences} */ preferences, /** @type {Choose} */ set) {
  names += 1;
  const input = el("input", {
    id: `when-${names}`,
    type: "text",
    inputmode: "numeric",
    value: preferences[name] ?? "",
    placeholder: "2024-05",
    title: "A year, a month or a day: 2024, 2024-05 or 2024-05-17",
    pattern: "\\d{4}(-\\d{2}(-\\d{2})?)?",
    maxlength: "10",
    autocomplete: "off",
  });
  input.addEventListener("change", () => input.reportValidity() && set({ [name]: input.value.trim() }));
  return el("div", { class: "field" }, el("label", { for: input.id }, words), input);
}

function undatedToo(/** @type {Preferences} */ preferences, /** @type {Choose} */ set) {
  const box = el("input", { type: "checkbox", checked: preferences.undated });
  box.addEventListener("change", () => set({ undated: box.checked }));
  return el("label", { class: "check undated" }, box, el("span", {}, "Also documents without a date"));
}

function known(/** @type {string} */ name, /** @type {string} */ words, /** @type {Preferences} */ preferences, /** @type {Choose} */ set) {
  names += 1;
  const input = el("input", { id: `known-${names}`, type: "text", value: preferences.meta[name] ?? "", maxlength: "100", autocomplete: "off" });
  input.addEventListener("change", () => {
    const given = Object.entries({ ...preferences.meta, [name]: input.value.trim() });
    set({ meta: Object.fromEntries(given.filter(([, value]) => value)) });
  });
  return el("div", { class: "field" }, el("label", { for: input.id }, words), input);
}

function without(/** @type {Map<string, string>} */ sources, /** @type {string} */ uri) {
  return new Map([...sources].filter(([other]) => other !== uri));
}

/** What is searched, in a word or two. */
function inWords(/** @type {BaseView[]} */ bases, /** @type {Preferences} */ { bases: chosen, sources, since, until, meta }) {
  const from = chosen.length && chosen.length < bases.length ? (chosen.length === 1 ? chosen[0] : plural(chosen.length, "base")) : "";
  const when = since || until ? [since, until].join("–").replace(/^–/, "to ").replace(/–$/, " on") : "";
  const parts = [from, sources.size ? plural(sources.size, "document") : "", when, ...Object.values(meta)].filter(Boolean);
  return parts.length ? parts.join(", ") : "All sources";
}
