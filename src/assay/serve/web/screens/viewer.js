// A document at the words that were cited: pages as pictures with the words marked, or its text. Also a screen of its own.

import { documentAccess } from "../documents/access.js";
import { at, get, patch, query } from "../lib/api.js";
import { el, fill, oneLine, plural } from "../lib/dom.js";
import { erase } from "../documents/erase_dialog.js";
import { switchDocuments, tagDocuments } from "../documents/marks.js";
import { pagesView } from "../documents/page_images.js";
import { button, dialog, failed, field, icon, loading } from "../lib/ui.js";
import { textView } from "../documents/document_text.js";

const LANGUAGES = "DisplayNames" in Intl ? new Intl.DisplayNames(["en"], { type: "language" }) : null;

/** The viewer for a place in a document; `source` has `document`, and `start`, `end` and `page` where a place is meant. */
export function documentView(source, app, { whole = false } = {}) {
  const stage = el("div", { class: "viewer-stage" });
  const bar = el("div", { class: "viewer-bar" });
  const node = el("div", { class: ["viewer", whole && "whole"] }, bar, stage);
  const path = at("api", "documents", source.document);
  const place = { start: number(source.start), end: number(source.end), page: number(source.page) };
  let shown = null;
  let closed = false;
  let pictures = true;

  async function start() {
    fill(stage, loading("Opening the document…"));
    try {
      const document_ = await get(path);
      if (closed) return null;
      pictures = document_.pictures;
      draw(document_);
      return document_;
    } catch (problem) {
      if (!closed && problem.status !== 401) {
        const gone = problem.status === 404;
        fill(
          stage,
          failed(
            gone ? { detail: "The document was removed, or you may not read it any more." } : problem,
            gone ? null : start,
            "The document cannot be shown",
          ),
        );
      }
      return null;
    }
  }

  function draw(document_) {
    shown?.close();
    shown = pictures ? pagesView(document_, path, place) : textView(document_, path, place);
    const original = `${path}/original`;
    fill(
      bar,
      shown.controls,
      document_.pictures ? toggle(document_) : null,
      el(
        "span",
        { class: "viewer-links" },
        whole ? null : el(
          "a",
          { class: "icon-button out-link", href: query(
            `#/document/${encodeURIComponent(document_.id)}`,
            { start: place.start, end: place.end },
          ), "aria-label": "Open on a page of its own", title: "Open on a page of its own" },
          icon("out_of"),
        ),
        el(
          "a",
          { class: "icon-button", href: original, download: true, "aria-label": "Download the file", title: `Download ${document_.name}` },
          icon("download"),
        ),
      ),
    );
    fill(stage, shown.node);
    shown.begin();
  }

  function toggle(document_) {
    const pick = (name, on, value) => {
      const input = el("input", { type: "radio", name: `view-${document_.id}-${whole}`, checked: on });
      input.addEventListener("change", () => {
        pictures = value;
        draw(document_);
      });
      return el("label", {}, input, el("span", {}, name));
    };
    return el(
      "div",
      { class: "segments", role: "radiogroup", "aria-label": "Show the document as" },
      pick("Pages", pictures, true),
      pick("Text", !pictures, false),
    );
  }

  const ready = start();
  return {
    node,
    ready,
    go: (offset) => shown?.go(offset),
    close: () => {
      closed = true;
      shown?.close();
    },
  };
}

function number(value) {
  return value === undefined || value === null || value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}

/** The screen `#/document/{id}?start=&end=`. */
export async function show(root, params, app) {
  const view = documentView({ document: params.document, start: params.start, end: params.end }, app, { whole: true });
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
async function owned(about, document_, app) {
  const bases = await get("/api/bases").catch(() => []);
  if (!bases.some((base) => base.name === document_.base && base.yours)) return;
  const remove = async () => {
    if (!(await erase(app, new Map([[document_.id, document_.title || document_.name]])))?.length) return;
    app.go(`#/documents/${encodeURIComponent(document_.base)}`);
  };
  const marked = async (work) => {
    if (await work) app.go(`#/document/${encodeURIComponent(document_.id)}`);
  };
  about.append(el(
    "div",
    { class: "actions doc-tools" },
    button(document_.state === "off" ? "Switch on" : "Switch off", { kind: "small", on: () => marked(switchDocuments(app, [document_.id], document_.state !== "off")) }),
    button("Tags", { kind: "small", on: () => marked(tagDocuments(app, [document_])) }),
    button("Correct title or date", { kind: "small", icon: "pencil", on: () => corrected(app, document_) }),
    button("Who may read it", { kind: "small", icon: "people", on: () => documentAccess(app, document_) }),
    button("Remove", { kind: "quiet small", icon: "trash", on: remove }),
  ));
}

/** Correct what was found out; it is recorded, and the document is searched by it from then on. */
async function corrected(app, document_) {
  const given = await dialog("Correct what was found out", (close) => {
    const title = el("input", { type: "text", value: document_.title, maxlength: "500", required: true, autofocus: true });
    const date = el("input", { type: "text", value: document_.date ?? "", placeholder: "2024-05-17", pattern: "\\d{4}(-\\d{2}(-\\d{2})?)?", maxlength: "10" });
    return el(
      "form",
      { class: "feedback-form", on: { submit: (event) => (event.preventDefault(), close({ title: title.value.trim(), date: date.value.trim() })) } },
      field("Title", title),
      field("Date", date, "A year, a month or a day; empty for none. Kept on the record with your name, until another version of the file takes its place."),
      el("div", { class: "actions" }, button("Cancel", { on: () => close(undefined) }), el("button", { type: "submit", class: "button primary" }, "Correct it")),
    );
  });
  if (!given) return;
  try {
    await patch(at("api", "documents", document_.id), given);
    app.toast("Corrected.", "good");
    app.go(`#/document/${encodeURIComponent(document_.id)}`);
  } catch (problem) {
    app.toast(problem.detail ?? problem.message, "bad");
  }
}

/** Which of one's answers cite it, fetched when it is opened. */
function cited(document_) {
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
            ? runs.map((each) => el("li", {}, el("a", { href: each.thread ? `#/thread/${encodeURIComponent(each.thread)}` : `#/run/${encodeURIComponent(each.run)}`, dir: "auto" }, each.question), el("span", { class: "small muted" }, ` ${each.asked_on}`)))
            : [el("li", { class: "muted small" }, "None of your answers cites it yet.")]));
        },
      },
    },
    el("summary", {}, "Where it was cited"),
    list,
  );
}

function details(document_, view) {
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
    el("p", { class: "small" }, el("a", { href: `#/documents/${encodeURIComponent(document_.base)}` }, "Documents")),
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
    ...document_.warnings.map((words) => el("p", { class: "note warn" }, icon("warning"), el("span", {}, words))),
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
