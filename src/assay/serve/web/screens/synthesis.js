// Synthesis: choose documents, see what it will take, start; and the syntheses there are. With a run: that one.

import { at, get, post, query } from "../lib/api.js";
import { showAccount } from "./account.js";
import { el, fill } from "../lib/dom.js";
import { forecasting } from "../runs/synthesis_forecast.js";
import { button, empty, failed, field, icon, loading } from "../lib/ui.js";
import { picking } from "../documents/document_picker.js";
import { runRow } from "./runs.js";

const PAUSE = 500; // milliseconds after the last change before the forecast is asked for
const PIPELINES = [
  [
    "synthesis",
    "Compare in depth",
    "How do they work, how do they relate, where do they disagree? Insights, relations with quotations on both sides, and a text built on them.",
  ],
  ["summary", "Sum up", "What do they say? A quick factual digest in one text. Also of a single document."],
];
const APPROACHES = [
  ["search", "One search a question", "Enough for most."],
  ["agent", "A short research run a question", "Digs deeper, and takes several times as long."],
];
const READERS = [["plain", "In plain words"], ["executive", "For somebody in a hurry"]];

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  if (params.run) return showAccount(root, params.run, app);
  app.title("Synthesis");
  const bases = await get("/api/bases");
  const screen = el(
    "div",
    { class: "page synthesis" },
    el(
      "header",
      { class: "page-head" },
      el(
        "div",
        {},
        el("h1", {}, "Synthesis"),
        el(
          "p",
          { class: "muted" },
          "Many documents, one account: what each contributes, how they relate, where they contradict each other. Every statement cites its source.",
        ),
      ),
    ),
  );
  fill(root, screen);
  if (!bases.some((base) => base.documents)) {
    screen.append(empty(
      "There are no documents yet",
      "Add some, and come back: two are enough to compare.",
      el("a", { class: "button primary", href: "#/documents" }, "Add documents"),
    ));
    return earlier(screen);
  }
  const leave = starting(screen, app, bases);
  const done = earlier(screen);
  return () => {
    leave();
    done();
  };
}

function starting(/** @type {HTMLElement} */ screen, /** @type {App} */ app, /** @type {BaseView[]} */ bases) {
  let timer = 0;
  const changed = () => {
    clearTimeout(timer);
    expected.stale();
    timer = setTimeout(() => expected.ask(request(), documents.size), PAUSE);
  };
  const documents = picking(bases, changed);
  const focus = el("textarea", { rows: "2", maxlength: "2000", placeholder: "How is drift of the probes corrected?" });
  const questions = el("input", { type: "number", min: "1", max: "20", value: "3", inputmode: "numeric" });
  const other = el("input", { type: "text", maxlength: "100", placeholder: "nurses on a night shift" });
  const model = el("input", { type: "checkbox", checked: !app.me.leaves.length });
  const stakes = el("input", { type: "checkbox" });
  const withModel = () => Boolean(app.me.model) && model.checked;
  const forWhom = step(
    "For whom",
    el("p", { class: "hint" }, "The account itself is for somebody who knows the field. The same claims can also be written for other readers:"),
    el(
      "div",
      { class: "readers" },
      ...READERS.map(([value, words]) => el(
        "label",
        { class: "check" },
        el("input", { type: "checkbox", name: "reader", value }),
        words,
      )),
    ),
    field("For other readers", other, "Describe them in a few words."),
  );
  const depth = el(
    "div",
    {},
    el("div", { class: "fields" }, field("Questions for each document", questions, "1 to 20; 3 is usual.")),
    el("p", { class: "legend" }, "How each is answered"),
    choices("approach", APPROACHES),
  );
  const form = el(
    "form",
    { class: "synthesis-request", "aria-label": "A new synthesis", on: { submit: (event) => event.preventDefault() } },
    modelNote(app.me),
    step("Which documents", documents.node),
    step("What to make of them", choices("pipeline", PIPELINES), field("Focus", focus, "What you want to know, in a sentence. Leave it empty for all of it.")),
    forWhom,
    el(
      "details",
      { class: "fold card more-options" },
      el("summary", {}, "How thoroughly"),
      el(
        "div",
        { class: "more-options-inside" },
        depth,
        app.me.model ? el("label", { class: "check" }, model, `Use the model ${app.me.model}; without it, quotations are chosen by rule`) : null,
        el("label", { class: "check" }, stakes, "High stakes: have it reviewed by a person before I read it"),
      ),
    ),
  );
  const expected = forecasting(app, start);

  /** @returns {CreateSynthesisRequest} */
  function request() {
    const fields = new FormData(form);
    const readers = [...fields.getAll("reader"), other.value.trim()].filter(Boolean).map(String);
    const asked = Math.min(20, Math.max(1, Number(questions.value) || 3));
    return {
      ...documents.chosen(),
      pipeline: /** @type {Pipeline} */ (fields.get("pipeline")),
      focus: focus.value.trim(),
      questions: asked,
      audiences: withModel() ? readers : [],
      approach: /** @type {Approach} */ (fields.get("approach")),
      model: withModel(),
      ...(stakes.checked ? { stakes: "high" } : {}),
    };
  }

  async function start() {
    const begun = await post("/api/synthesis", request());
    app.go(`#${at("synthesis", begun.run)}`);
  }

  /** Without a model the account is a digest by rule: what only a model does is not offered. */
  const offer = () => {
    forWhom.hidden = depth.hidden = !withModel();
  };
  offer();
  model.addEventListener("change", offer);
  form.addEventListener("input", (event) => {
    if (!(event.target instanceof Element && event.target.closest(".picking-search"))) changed();
  });
  screen.append(el("div", { class: "request-and-forecast" }, form, expected.node));
  changed();
  return () => {
    clearTimeout(timer);
    expected.close();
    documents.close();
  };
}

/** What has to be known of the model before starting. An administrator can change it from here. */
function modelNote(/** @type {MeResponse} */ me) {
  const note = (/** @type {Child[]} */ ...words) => el("p", { class: "note" }, icon("info"), el("span", {}, ...words));
  const link = (/** @type {string} */ words) => el("a", { href: "#/model" }, words);
  if (!me.model) return note("No model is set up: the account is a digest of quotations, chosen by rule. ", me.admin ? link("Connect a model") : null);
  if (!me.leaves.length) return null;
  return note(
    `With the model, passages would be sent to ${me.leaves.join(", ")}. Nobody has agreed to that yet. `,
    me.admin ? link("Agree, or choose another model") : "Until an administrator does, the account is made without a model.",
  );
}

function step(/** @type {string} */ title, /** @type {Child[]} */ ...parts) {
  return el("fieldset", { class: "card request-part" }, el("legend", { class: "visually-hidden" }, title), el("h2", { "aria-hidden": "true" }, title), ...parts);
}

/** A choice of few, each with a sentence on when to take it. */
function choices(/** @type {string} */ name, /** @type {string[][]} */ options) {
  return el(
    "div",
    { class: "choices" },
    ...options.map(([value, title, when], place) =>
      el(
        "label",
        { class: "choice" },
        el("input", { type: "radio", name, value, checked: place === 0 }),
        el("span", {}, el("strong", {}, title), el("span", { class: "small muted" }, when)),
      ),
    ),
  );
}

/** Syntheses that were made before, some at a time. */
function earlier(/** @type {HTMLElement} */ screen) {
  const list = el("ul", { class: "list", hidden: true });
  const foot = el("div", { class: "paged-foot" }, loading());
  screen.append(el("section", { class: "earlier" }, el("h2", {}, "Made before"), list, foot));
  let after = "";
  let left = false;

  async function more() {
    try {
      const found = await get(query("/api/runs", { after, limit: 20, kind: "synthesis" }));
      if (left) return;
      list.append(...found.runs.map(row));
      after = found.next;
      list.hidden = !list.childElementCount;
      fill(foot, after ? button("Look further back", { on: more }) : list.hidden ? el("p", { class: "muted" }, "None yet.") : null);
    } catch (problem) {
      if (!left) fill(foot, failed(problem, more));
    }
  }

  more();
  return () => {
    left = true;
  };
}

function row(/** @type {RunSummary} */ run) {
  const made = runRow(run);
  const title = made.querySelector(".row-title");
  title?.setAttribute("href", `#${at("synthesis", run.id)}`);
  const links = made.querySelector(".row-more a");
  links?.replaceWith(el("a", { href: `#${at("run", run.id)}` }, icon("trace", 13), "its trace"));
  return made;
}
