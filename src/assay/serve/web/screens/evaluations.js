// Evaluations: what `assay evaluate run` measured in this workspace, with intervals, the verdict and the worst cases.

import { at, get } from "../lib/api.js";
import { el, fill, plural } from "../lib/dom.js";
import { badge, empty, grid, note, pageHead } from "../lib/ui.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  if (params.evaluation) return showOne(root, params.evaluation, app);
  app.title("Evaluations");
  const { evaluations } = await get("/api/evaluations");
  fill(
    root,
    el(
      "div",
      { class: "page evaluations" },
      pageHead("Evaluations", "Your own questions, asked by `assay evaluate run` and graded."),
      evaluations.length
        ? el("ul", { class: "list", "aria-label": "Evaluations" }, ...evaluations.map(row))
        : empty("No evaluation yet", "Write some twenty questions into a spreadsheet and run: assay evaluate run questions.csv --baseline one-shot"),
    ),
  );
}

function row(/** @type {EvaluationEntry} */ each) {
  const more = `${each.day} · ${plural(each.questions, "question")} · ${each.sides.join(" and ")}`;
  return linked(`#${at("evaluations", each.name)}`, each.title, more, each.right && `right: ${each.right}`);
}

function linked(/** @type {string} */ href, /** @type {string} */ title, /** @type {string} */ more, /** @type {string} */ mark) {
  return el(
    "li",
    { class: "row" },
    el(
      "div",
      { class: "grow" },
      el("a", { class: "row-title", href, dir: "auto" }, title),
      el("p", { class: "row-more", dir: "auto" }, more),
    ),
    mark ? badge(mark) : null,
  );
}

async function showOne(/** @type {HTMLElement} */ root, /** @type {string} */ name, /** @type {App} */ app) {
  app.title(`Evaluation: ${name}`);
  const found = await get(at("api", "evaluations", name));
  const told = found.sides.map((each) => `${each.name}: ${each.description}.`).join(" ");
  fill(
    root,
    el(
      "div",
      { class: "page evaluations" },
      pageHead(found.title, `${found.day}. ${plural(found.questions, "question")}. ${told}`),
      found.verdict ? note("info", "info", found.verdict) : null,
      el("h2", {}, "Figures"),
      el("p", { class: "small muted" }, `Intervals are 95 % bootstrap intervals. ${found.grading}`),
      figures(found),
      ...tags(found),
      el("h2", {}, "Worst cases"),
      found.worst.length
        ? el("ol", { class: "list", "aria-label": "Worst cases" }, ...found.worst.map(worst))
        : el("p", {}, "No case was wrong."),
    ),
  );
}

function figures(/** @type {EvaluationResponse} */ { title, sides, metrics }) {
  const compared = sides.length > 1;
  return grid(
    `Figures: ${title}`,
    ["metric", "cases", ...sides.map((each) => each.name), ...(compared ? ["difference"] : [])],
    metrics.map((metric) => [
      el("span", {}, metric.label, " ", el("span", { class: "small muted" }, metric.meaning)),
      String(Math.max(...metric.cells.map((each) => each?.n ?? 0))),
      ...metric.cells.map((each) => estimate(each, metric.share)),
      ...(compared ? [metric.difference?.words ?? "–"] : []),
    ]),
    "report-table",
  );
}

/** The words, and for a share a bar with its interval. */
function estimate(/** @type {EstimateView | null} */ found, /** @type {boolean} */ share) {
  if (!found) return "–";
  if (!share) return found.words;
  const per = (/** @type {number} */ value) => `${Math.round(1000 * value) / 10}%`;
  return el(
    "div",
    { class: "estimate" },
    el("span", {}, found.words),
    el(
      "span",
      { class: "estimate-bar", "aria-hidden": "true" },
      el("span", { class: "estimate-mean", style: { width: per(found.mean) } }),
      el("span", { class: "estimate-interval", style: { left: per(found.low), width: per(found.high - found.low) } }),
    ),
  );
}

function tags(/** @type {EvaluationResponse} */ { sides, tags: rows }) {
  if (!rows.length) return [];
  return [
    el("h2", {}, "Right answers by tag"),
    grid("By tag", ["tag", "questions", ...sides.map((each) => each.name)], rows.map((each) => [each.tag, String(each.questions), ...each.cells]), "report-table"),
  ];
}

function worst(/** @type {WorstCaseView} */ each) {
  const expected = `Expected: ${each.expected || "nothing"}`;
  return linked(`#${at("run", each.run)}`, each.question, expected, each.outcome);
}
