// The screen of a document: the document, what is known of it, and what can be done with it.

import { documentAccess } from "../documents/access.js";
import { at, get, patch } from "../lib/api.js";
import { el, fill, oneLine, plural } from "../lib/dom.js";
import { erase } from "../documents/erase_dialog.js";
import { switchDocument, tagDocument } from "../documents/marks.js";
import { button, dialog, field, note, submit } from "../lib/ui.js";
import { documentView } from "../documents/document_view.js";

const LANGUAGES = "DisplayNames" in Intl ? new Intl.DisplayNames(["en"], { type: "language" }) : null;

/** The screen `#/document/{id}?start=&end=`. */
export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  const view = documentView({ document: params.document, start: params.start, end: params.end }, { whole: true });
  const about = el("div", { class: "document-about" });
  const screen = el("div", { class: "document-screen" }, about, view.node);
  fill(root, screen);
  const document_ = await view.ready;
  if (document_) {
    app.title(document_.title);
    fill(about, ...details(document_, view));
    await owned(about, document_, app);
  } else app.title("Document");
  return view.close;
}

/** What only those may do who fill the base it is in. */
async function owned(/** @type {HTMLElement} */ about, /** @type {DocumentView} */ document_, /** @type {App} */ app) {
  const bases = await get("/api/bases").catch(() => []);
  if (!bases.some((base) => base.name === document_.base && base.yours)) return;
  const remove = async () => {
    if (!(await erase(app, new Map([[document_.id, document_.title || document_.name]])))?.length) return;
    app.go(`#${at("documents", document_.base)}`);
  };
  const marked = async (/** @type {Promise<unknown>} */ work) => {
    if (await work) app.go(`#${at("document", document_.id)}`);
  };
  about.append(el(
    "div",
    { class: "actions doc-tools" },
    button(document_.state === "off" ? "Switch on" : "Switch off", { kind: "small", on: () => marked(switchDocument(app, document_.id, document_.state !== "off")) }),
    button("Tags", { kind: "small", on: () => marked(tagDocument(app, document_)) }),
    button("Correct title or date", { kind: "small", icon: "pencil", on: () => corrected(app, document_) }),
    button("Who may read it", { kind: "small", icon: "people", on: () => documentAccess(app, document_) }),
    button("Remove", { kind: "quiet small", icon: "trash", on: remove }),
  ));
}

/** Correct what was found out; it is recorded, and the document is searched by it from then on. */
async function corrected(/** @type {App} */ app, /** @type {DocumentView} */ document_) {
  const given = await dialog("Correct what was found out", (close) => {
    const title = el("input", { type: "text", value: document_.title, maxlength: "500", required: true, autofocus: true });
    const date = el("input", { type: "text", value: document_.date ?? "", placeholder: "2024-05-17", pattern: "\\d{4}(-\\d{2}(-\\d{2})?)?", maxlength: "10" });
    return el(
      "form",
      { class: "feedback-form", on: { submit: (event) => (event.preventDefault(), close({ title: title.value.trim(), date: date.value.trim() })) } },
      field("Title", title),
      field("Date", date, "A year, a month or a day; empty for none. Kept on the record with your name, until another version of the file takes its place."),
      el("div", { class: "actions" }, button("Cancel", { on: () => close(undefined) }), submit("Correct it")),
    );
  });
  if (!given) return;
  await app.attempt(async () => {
    await patch(at("api", "documents", document_.id), given);
    app.toast("Corrected.", "good");
    app.go(`#${at("document", document_.id)}`);
  });
}

/** Which of one's answers cite it, fetched when it is opened. */
function cited(/** @type {DocumentView} */ document_) {
  const list = el("ul", { class: "contents" });
  return el(
    "details",
    {
      class: "fold",
      on: {
        toggle: async (event) => {
          if (!event.currentTarget.open || list.childElementCount) return;
          const { runs } = await get(`${at("api", "documents", document_.id)}/citations`).catch(() => ({ runs: [] }));
          fill(list, ...(runs.length
            ? runs.map((each) => el("li", {}, el("a", { href: each.thread ? `#${at("thread", each.thread)}` : `#${at("run", each.run)}`, dir: "auto" }, each.question), el("span", { class: "small muted" }, ` ${each.asked_on}`)))
            : [el("li", { class: "muted small" }, "None of your answers cites it yet.")]));
        },
      },
    },
    el("summary", {}, "Where it was cited"),
    list,
  );
}

function details(/** @type {DocumentView} */ document_, /** @type {any} */ view) {
  const facts = [
    ["About", [document_.organisation, document_.kind_of_document, document_.period].filter(Boolean).join(", ")],
    ["By", document_.authors.join(", ")],
    ["Tags", document_.tags.join(", ")],
    ["State", document_.state === "off" ? "switched off: it is not searched" : ""],
    ["Dated", document_.date],
    [
      "Length",
      [
        document_.pages ? plural(document_.pages, "page") : "",
        plural(document_.characters, "character"),
      ].filter(Boolean).join(", "),
    ],
    ["Language", document_.language ? LANGUAGES?.of(document_.language) ?? document_.language : ""],
    ["Read as", document_.kind],
    ["In", document_.base],
    ["File", document_.name],
  ].filter(([, words]) => words);
  const wide = matchMedia("(min-width: 68rem)").matches;
  return [
    el("p", { class: "small" }, el("a", { href: `#${at("documents", document_.base)}` }, "Documents")),
    el("h1", {}, document_.title || document_.name),
    el(
      "details",
      { class: "fold", open: wide },
      el("summary", {}, "About this document"),
      el(
        "dl",
        { class: "doc-facts" },
        ...facts.map(([name, words]) => el("div", {}, el("dt", {}, name), el("dd", {}, words))),
      ),
    ),
    ...document_.warnings.map((words) => note("warn", "warning", words)),
    document_.abstract ? el(
      "details",
      { class: "fold", open: wide },
      el("summary", {}, "Abstract"),
      el("p", { class: "abstract" }, oneLine(document_.abstract)),
    ) : null,
    document_.tables.length ? el(
      "details",
      { class: "fold" },
      el("summary", {}, plural(document_.tables.length, "table")),
      el("ul", { class: "contents" }, ...document_.tables.slice(0, 60).map((table) => el(
        "li",
        {},
        el("button", { type: "button", class: "contents-entry", dir: "auto", on: { click: () => view.go(table.start) } }, table.caption || table.columns.filter(Boolean).join(", ") || "Without a caption"),
        el("span", { class: "small muted" }, ` ${plural(table.rows, "row")}`),
      ))),
    ) : null,
    cited(document_),
    document_.sections.length
      ? el(
          "details",
          { class: "fold", open: wide },
          el("summary", {}, "Contents"),
          el(
            "nav",
            { "aria-label": "Contents of the document" },
            el(
              "ol",
              { class: "contents" },
              ...document_.sections.map((section) => el(
                "li",
                { style: { "--level": String(Math.max(0, Math.min(section.level, 5) - 1)) } },
                el(
                  "button",
                  { type: "button", class: "contents-entry", on: { click: () => view.go(section.start) } },
                  section.title,
                ),
              )),
            ),
          ),
        )
      : null,
  ];
}
