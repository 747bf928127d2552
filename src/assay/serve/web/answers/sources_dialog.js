// The dialog in which a person says what is searched. The documents are searched for and paged on the server.

import { get, query } from "../lib/api.js";
import { count, dotted, el, fill, plural } from "../lib/dom.js";
import { paged } from "../lib/paged_list.js";
import { META, partsOf, without } from "./sources_choice.js";
import { actions, afterTyping, button, check, dialog, field } from "../lib/ui.js";

const PAGE = 50;
const AT_ONCE = 200; // as the API gives them out, where all that match are picked
const MOST = 2000; // documents that can be picked
let lists = 0;

/** What is chosen holds at once. */
export function choose(/** @type {App} */ app, /** @type {BaseView[]} */ bases, /** @type {Preferences} */ preferences, /** @type {(part: Partial<Preferences>) => void} */ set) {
  const search = el("input", { type: "search", placeholder: "Title, file name, author or tag", "aria-label": "Find documents to choose", autocomplete: "off", autofocus: true });
  const status = el("p", { class: "small muted figures", role: "status" });
  const tools = el("div", { class: "choosing-tools" });
  const results = el("div", { class: "picking-results", tabindex: "0", role: "region", "aria-label": "Documents to pick from" });
  const year = el("select", {}, el("option", { value: "" }, "Any"));
  const since = date("since");
  const until = date("until");
  const undated = el("input", { type: "checkbox", checked: preferences.undated });
  const known = Object.fromEntries(Object.keys(META).map((name) => [name, metaInput(name)]));
  let total = 0;

  const asked = (/** @type {string} */ after, /** @type {number} */ limit) => get(query("/api/documents", {
    q: search.value.trim(),
    base: preferences.bases,
    meta: Object.entries(preferences.meta).map(([name, value]) => `${name}:${value}`),
    since: preferences.since,
    until: preferences.until,
    undated: preferences.undated,
    state: "ready",
    after,
    limit,
  }));

  const pages = paged(results, {
    label: "Documents found",
    look: "picking-list",
    fetch: async (after) => {
      const found = await asked(after, PAGE);
      return { items: found.documents, next: found.next, total: found.total };
    },
    row: (document_) => {
      const title = document_.title || document_.name;
      const box = el("input", { type: "checkbox", checked: preferences.documents.has(document_.id), dataset: { id: document_.id } });
      box.addEventListener("change", () => {
        if (box.checked && preferences.documents.size >= MOST) box.checked = false;
        else pick(box.checked ? new Map([...preferences.documents, [document_.id, title]]) : without(preferences.documents, document_.id));
      });
      return el("li", {}, check(box, el("span", { dir: "auto" }, title), " ", el("span", { class: "small muted" }, dotted(document_.date, document_.base))));
    },
    none: () => el("p", { class: "state slim" }, "No document fits."),
    onCount: (many) => {
      total = many;
      drawStatus();
    },
  });

  function pick(/** @type {Map<string, string>} */ documents) {
    set({ documents });
    for (const box of results.querySelectorAll("input")) box.checked = documents.has(box.dataset.id ?? "");
    drawStatus();
  }

  function drawStatus() {
    const picked = preferences.documents.size;
    const narrowed = Boolean(search.value.trim() || partsOf({ ...preferences, documents: new Map() }).length);
    const many = total + picked > MOST;
    status.textContent = picked
      ? `${plural(picked, "document")} picked: only ${picked === 1 ? "this is" : "these are"} searched. ${plural(total, "document")} match.`
      : `${plural(total, "document")} match${search.value.trim() ? ". Nothing picked." : ": all of them are searched."}`;
    fill(
      tools,
      narrowed && total && !many ? button(`Select all ${count(total)} that match`, { kind: "small", on: pickAll }) : null,
      picked ? button("Pick none", { kind: "quiet small", on: () => pick(new Map()) }) : null,
      narrowed && many ? el("span", { class: "hint" }, `At most ${count(MOST)} can be picked. A base, folder, tag or date takes all that it has.`) : null,
    );
  }

  async function pickAll(/** @type {Click} */ event) {
    event.currentTarget.disabled = true;
    await app.attempt(async () => {
      const documents = new Map(preferences.documents);
      let after = "";
      do {
        const found = await asked(after, AT_ONCE);
        for (const each of found.documents) documents.set(each.id, each.title || each.name);
        after = found.next;
      } while (after && documents.size < MOST);
      pick(documents);
    });
    tools.querySelector("button")?.focus();
  }

  function narrow(/** @type {Partial<Preferences>} */ part) {
    set(part);
    since.value = preferences.since;
    until.value = preferences.until;
    year.value = preferences.since === preferences.until ? preferences.since : "";
    pages.restart();
  }

  function date(/** @type {"since" | "until"} */ name) {
    const input = el("input", {
      type: "text",
      inputmode: "numeric",
      value: preferences[name],
      placeholder: "2024-05",
      title: "A year, a month or a day: 2024, 2024-05 or 2024-05-17",
      pattern: "\\d{4}(-\\d{2}(-\\d{2})?)?",
      maxlength: "10",
      autocomplete: "off",
    });
    input.addEventListener("change", () => input.reportValidity() && narrow({ [name]: input.value.trim() }));
    return input;
  }

  function metaInput(/** @type {string} */ name) {
    lists += 1;
    const input = el("input", { type: "text", value: preferences.meta[name] ?? "", maxlength: "100", autocomplete: "off", list: `choices-${lists}` });
    input.addEventListener("change", () => {
      const given = Object.entries({ ...preferences.meta, [name]: input.value.trim() });
      narrow({ meta: Object.fromEntries(given.filter(([, value]) => value)) });
    });
    return { input, options: el("datalist", { id: `choices-${lists}` }) };
  }

  async function fetchChoices() {
    const found = await get(query("/api/document-choices", { base: preferences.bases })).catch(() => null); // they only help
    if (!found) return;
    for (const [name, { options }] of Object.entries(known)) {
      fill(options, .../** @type {any} */ (found)[name].map((/** @type {Choice} */ each) => el("option", { value: each.value }, plural(each.documents, "document"))));
    }
    fill(year, el("option", { value: "" }, "Any"), ...found.year.map((each) => el("option", { value: each.value }, `${each.value} (${count(each.documents)})`)));
    year.value = preferences.since === preferences.until ? preferences.since : "";
  }

  year.addEventListener("change", () => narrow({ since: year.value, until: year.value }));
  undated.addEventListener("change", () => narrow({ undated: undated.checked }));
  const quiet = afterTyping(search, () => pages.restart());
  pages.restart();
  fetchChoices();
  return dialog("What is searched", (close) => el(
    "div",
    { class: "choosing" },
    el(
      "div",
      { class: "choosing-limits" },
      bases.length > 1 ? fromBases(bases, preferences, (part) => (narrow(part), fetchChoices())) : null,
      ...Object.entries(META).flatMap(([name, label]) => [field(label, known[name].input), known[name].options]),
      field("Year", year),
      el("div", { class: "dates" }, field("Dated from", since), field("to", until)),
      check(undated, "Also documents without a date"),
    ),
    el("div", { class: "choosing-documents" }, search, status, tools, results),
    actions(el("button", { type: "button", class: "button primary", on: { click: () => close() } }, "Done")),
  ), { wide: true }).then(() => {
    quiet();
    pages.close();
  });
}

function fromBases(/** @type {BaseView[]} */ bases, /** @type {Preferences} */ preferences, /** @type {(part: Partial<Preferences>) => void} */ narrow) {
  return el(
    "fieldset",
    {},
    el("legend", { class: "legend" }, "Knowledge bases"),
    ...bases.map((base) => {
      const box = el("input", { type: "checkbox", checked: preferences.bases.includes(base.name) });
      box.addEventListener("change", () => narrow({
        bases: box.checked ? [...preferences.bases, base.name] : preferences.bases.filter((other) => other !== base.name),
      }));
      return check(
        box,
        base.name,
        el("span", { class: "small muted" }, ` ${plural(base.documents, "document")}`),
        base.description ? el("span", { class: "small muted base-says" }, base.description) : null,
      );
    }),
  );
}
