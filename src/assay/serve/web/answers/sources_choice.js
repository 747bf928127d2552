// What is searched, shown above the question: picked documents; or else everything, within knowledge bases, folders, tags,
// organisations and dates. It is chosen in a dialog.

import { el, fill, plural } from "../lib/dom.js";
import { button, icon, iconButton } from "../lib/ui.js";

const NAMED = 3; // picked documents that are named above the question
export const META = /** @type {const} */ ({ folder: "Folder", tag: "Tag", organisation: "Organisation", author: "Author", kind: "Kind" });

/** What the API wants to know of the choice. Where documents are picked, nothing else narrows them. */
export function whereOf(/** @type {Preferences} */ { documents, bases, sources, since, until, undated, meta }) {
  if (documents.size) return { documents: [...documents.keys()] };
  return { bases, sources, since: since || null, until: until || null, undated, meta };
}

/** The choice of the latest turn of a thread; without one, everything. */
export function whereBefore(/** @type {WhereView | null} */ where) {
  return {
    bases: [...(where?.bases ?? [])],
    sources: [...(where?.sources ?? [])],
    documents: new Map((where?.documents ?? []).map((each) => [each.id, each.title])),
    since: (where?.since ?? "").replace(/-01-01$/, ""), // as people write a whole year
    until: (where?.until ?? "").replace(/-12-31$/, ""),
    undated: where?.undated ?? false,
    meta: { ...where?.meta },
  };
}

/** The button that opens the choice, and the line that says what it is. `changed(part)` hears of it. */
export function sourcesChoice(/** @type {App} */ app, /** @type {BaseView[]} */ bases, /** @type {Preferences} */ preferences, /** @type {Choose} */ changed) {
  const words = el("span", {});
  const opener = el(
    "button",
    { type: "button", class: "button quiet small sources-opener", "aria-haspopup": "dialog", on: { click: open } },
    icon("document"),
    words,
  );
  const line = el("div", { class: "searched-in", role: "group", "aria-label": "What is searched" });

  async function open() {
    const { choose } = await import("./sources_dialog.js"); // fetched only by who needs it
    choose(app, bases, preferences, set);
  }

  function set(/** @type {Partial<Preferences>} */ part) {
    changed(part);
    draw();
  }

  function draw() {
    const parts = partsOf(preferences);
    words.textContent = parts.length ? "Sources" : "All sources";
    line.hidden = !parts.length;
    fill(
      line,
      el("span", { class: "small muted" }, "Only in"),
      ...parts.map(([name, without]) => el(
        "span",
        { class: "chip" },
        el("span", { class: "clip", dir: "auto" }, name),
        iconButton("close", `Leave out ${name}`, () => {
          set(without);
          (line.querySelector("button") ?? opener).focus();
        }),
      )),
      parts.length > 1 ? button("All sources", { kind: "quiet small", on: () => (set(whereBefore(null)), opener.focus()) }) : null,
    );
  }

  draw();
  return { opener, line };
}

/** The parts of the choice in words, each with what it is without that part. @returns {[string, Partial<Preferences>][]} */
export function partsOf(/** @type {Preferences} */ { bases, sources, documents, since, until, meta }) {
  if (documents.size > NAMED) return [[plural(documents.size, "document"), { documents: new Map() }]];
  if (documents.size) return [...documents].map(([id, title]) => [title, { documents: without(documents, id) }]);
  const when = since === until ? since : [since && `from ${since}`, until && `to ${until}`].filter(Boolean).join(" ");
  return [
    ...bases.map((name) => /** @type {[string, Partial<Preferences>]} */ ([name, { bases: bases.filter((other) => other !== name) }])),
    ...sources.map((name) => /** @type {[string, Partial<Preferences>]} */ ([`“${name}”`, { sources: sources.filter((other) => other !== name) }])),
    ...Object.entries(meta).map(([name, value]) => /** @type {[string, Partial<Preferences>]} */ ([
      `${(/** @type {Words} */ (META)[name] ?? name).toLowerCase()}: ${value}`,
      { meta: Object.fromEntries(Object.entries(meta).filter(([other]) => other !== name)) },
    ])),
    ...(when ? [/** @type {[string, Partial<Preferences>]} */ ([when, { since: "", until: "" }])] : []),
  ];
}

export function without(/** @type {Map<string, string>} */ documents, /** @type {string} */ id) {
  return new Map([...documents].filter(([other]) => other !== id));
}
