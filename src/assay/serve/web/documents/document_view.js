// A document at the words that were cited: pages as pictures with the words marked, or its text.

import { at, get, query } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { failed, icon, loading, segments } from "../lib/ui.js";
import { textView } from "./document_text.js";
import { pagesView } from "./page_images.js";

/** The viewer for a place in a document; `source` has `document`, and `start`, `end` and `page` where a place is meant. */
export function documentView(/** @type {Opened} */ source, { whole = false } = {}) {
  const stage = el("div", { class: "viewer-stage" });
  const bar = el("div", { class: "viewer-bar" });
  const node = el("div", { class: ["viewer", whole && "whole"] }, bar, stage);
  const path = at("api", "documents", source.document);
  const place = { start: number(source.start), end: number(source.end), page: number(source.page) };
  let shown = /** @type {ReturnType<typeof textView> | null} */ (null);
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
            gone ? { message: "The document was removed, or you may not read it any more." } : problem,
            gone ? null : start,
            "The document cannot be shown",
          ),
        );
      }
      return null;
    }
  }

  function draw(/** @type {DocumentView} */ document_) {
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
            `#${at("document", document_.id)}`,
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

  function toggle(/** @type {DocumentView} */ document_) {
    return segments("Show the document as", { pages: ["Pages"], text: ["Text"] }, pictures ? "pages" : "text", (chosen) => {
      pictures = chosen === "pages";
      draw(document_);
    });
  }

  const ready = start();
  return {
    node,
    ready,
    go: (/** @type {number} */ offset) => shown?.go(offset),
    close: () => {
      closed = true;
      shown?.close();
    },
  };
}

function number(/** @type {unknown} */ value) {
  return value === undefined || value === null || value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}
