// What can be done with an answer: see its evidence, copy it, save it, look into its trace. And what it took.

import { at, get, query } from "../lib/api.js";
import { count, dotted, el, money, plural, seconds } from "../lib/dom.js";
import { button, copyWords, download, icon, traceLink } from "../lib/ui.js";
import { giveFeedback } from "./feedback.js";

const FORMS = [
  ["markdown", "Markdown", "md"],
  ["html", "Web page", "html"],
  ["json", "JSON", "json"],
  ["bibtex", "BibTeX", "bib"],
];

/** The row under an answer. */
export function tools(/** @type {RunView} */ run, /** @type {TurnContext} */ context) {
  const text = async (/** @type {string} */ format) => {
    const words = await get(query(`${at("api", "runs", run.id)}/answer`, { format }));
    return typeof words === "string" ? words : JSON.stringify(words, null, 2);
  };
  const copy = async (/** @type {string} */ format) => {
    await context.app.attempt(async () => {
      await copyWords(context.app, await text(format));
    });
  };
  const save = async (/** @type {string[]} */ [format, , ending]) => {
    await context.app.attempt(async () => {
      const made = URL.createObjectURL(new Blob([await text(format)], { type: "application/octet-stream" }));
      download(`answer-${run.id.slice(0, 8)}.${ending}`, made);
      setTimeout(() => URL.revokeObjectURL(made), 60000);
    });
  };
  return el(
    "div",
    { class: "answer-tools" },
    run.evidence.length ? button(
      `Evidence (${count(run.evidence.length)})`,
      { kind: "small", icon: "list", on: (event) => context.openEvidence(run.id, event.currentTarget) },
    ) : null,
    button("Copy", { kind: "quiet small", icon: "copy", title: "The answer with its citations", on: () => copy("text") }),
    el(
      "details",
      { class: "menu" },
      el("summary", { class: "button quiet small" }, icon("download"), el("span", {}, "Save")),
      el(
        "div",
        { class: "menu-list" },
        ...FORMS.map((form) => el(
          "button",
          { type: "button", class: "menu-item", on: { click: (event) => (event.currentTarget.closest("details")?.removeAttribute("open"), save(form)) } },
          form[1],
        )),
      ),
    ),
    traceLink(run.id),
    button("Not right?", { kind: "quiet small", icon: "bang", on: () => giveFeedback(context.app, run.id) }),
    el("span", { class: "spent figures" }, spentWords(run)),
  );
}

/** What the run took, in words. */
function spentWords(/** @type {RunView} */ run) {
  const used = run.usage;
  const tokens = used.tokens_in + used.tokens_out;
  return dotted(
    seconds(run.seconds),
    run.rounds ? plural(run.rounds, "round") : "",
    used.calls ? plural(used.calls, "call") : "",
    tokens ? plural(tokens, "token") : "",
    used.money ? money(used.money) : "",
    run.mode,
    run.models.length ? run.models.join(", ") : "without a model",
  );
}
