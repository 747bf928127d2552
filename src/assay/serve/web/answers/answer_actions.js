// What can be done with an answer: see its evidence, copy it, save it, ask again, look into its trace. And what it took.

import { at, get, query } from "../lib/api.js";
import { count, dotted, el, money, plural, seconds } from "../lib/dom.js";
import { button, copyWords, download, icon, traceLink } from "../lib/ui.js";
import { MODES } from "./modes.js";
import { thumbs } from "./feedback.js";

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
  const copy = () => context.app.attempt(async () => copyWords(context.app, await text("markdown")));
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
    button("Copy", { kind: "quiet small", icon: "copy", title: "As Markdown, with its sources", on: copy }),
    menu("download", "Save", FORMS.map((form) => [form[1], () => save(form)])),
    context.again ? menu("again", "Ask again", againWays(run, context)) : null,
    traceLink(run.id),
    thumbs(context.app, run.id),
    el("span", { class: "spent figures" }, spentWords(run)),
  );
}

/** Words, and what they do. */
/** @typedef {[string, () => unknown]} Way */

function menu(/** @type {string} */ drawn, /** @type {string} */ name, /** @type {Way[]} */ ways) {
  const chosen = (/** @type {Click} */ event, /** @type {() => unknown} */ act) => {
    event.currentTarget.closest("details")?.removeAttribute("open");
    act();
  };
  return el(
    "details",
    { class: "menu" },
    el("summary", { class: "button quiet small" }, icon(drawn), el("span", {}, name)),
    el(
      "div",
      { class: "menu-list" },
      ...ways.map(([words, act]) => el("button", { type: "button", class: "menu-item", on: { click: (event) => chosen(event, () => act()) } }, words)),
    ),
  );
}

/** How the question can be asked again: both answers stay in the thread. @returns {Way[]} */
function againWays(/** @type {RunView} */ run, /** @type {TurnContext} */ { app, again, edit }) {
  const byModel = run.models.length > 0;
  const modes = app.me.modes.map((mode) => /** @type {Way} */ ([
    mode === run.mode ? `${MODES[mode][0]}, as before` : MODES[mode][0],
    () => again?.(run, { mode, model: byModel }),
  ]));
  /** @type {Way[]} */
  const other = app.me.model ? [[byModel ? "Without a model" : "With the model", () => again?.(run, { mode: run.mode, model: !byModel })]] : [];
  const named = app.me.models.filter((name) => app.me.models.length > 1 && run.models.join() !== name);
  const models = named.map((name) => /** @type {Way} */ ([`With ${name}`, () => again?.(run, { mode: run.mode, model: true, named: name })]));
  return [["In other words…", () => edit?.(run.id)], ...modes, ...models, ...other];
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
