// The answers and syntheses that rest on words that have changed since.

import { at, get } from "../lib/api.js";
import { recheckView } from "../answers/recheck.js";
import { el } from "../lib/dom.js";
import { empty } from "../lib/ui.js";

export async function staleAnswers(/** @type {App} */ app) {
  const { answers } = await get("/api/recheck");
  return [
    el(
      "div",
      { class: "report-lead" },
      el("h2", {}, "Stale answers"),
      el("p", { class: "muted" }, "Answers of yours whose sources have changed since: quotations, cells and calculations, compared with your documents of now."),
    ),
    answers.length
      ? el("ul", { class: "rows stale" }, ...answers.map((each) => row(each, app)))
      : empty("Every answer still rests on what your documents say", "When a document that an answer cites is replaced or removed, the answer is listed here."),
  ];
}

function row(/** @type {RecheckView} */ found, /** @type {App} */ app) {
  const place = found.synthesis ? at("synthesis", found.run) : at("run", found.run);
  return el(
    "li",
    { class: "row" },
    el("div", { class: "grow" }, el("a", { class: "row-title", href: `#${place}`, dir: "auto" }, found.question || "(erased)"), recheckView(found, app)),
  );
}
