// Evaluations: what `assay evaluate run` measured in this workspace, with intervals, the verdict and the worst cases.

import { at, get } from "../lib/api.js";
import { el, fill, plural } from "../lib/dom.js";
import { badge, empty, icon, pageHead } from "../lib/ui.js";

export async function show(root, params, app) {
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

function row(each) {
  const more = `${each.day} · ${plural(each.questions, "question")} · ${each.sides.join(" and ")}`;
  return linked(`#/evaluations/${encodeURIComponent(each.name)}`, each.title, more, each.right && `right: ${each.right}`);
}

function linked(href, title, more, mark) {
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

async function showOne(root, name, app) {
  app.title(`Evaluation: ${name}`);
  const found = await get(at("api", "evaluations", name));
  const told = found.sides.map((each) => `${each.name}: ${each.description}.`).join(" ");
  fill(
    root,
    el(
      "div",
      { class: "page evaluations" },
      pageHead(found.title, `${found.day}. ${plural(found.questions, "question")}. ${told}`),
      found.verdict ? el("p", { class: "note info" }, icon("info"), el("span", {}, found.verdict)) : null,
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

function figures({ title, sides, metrics }) {
  const compared = sides.length > 1;
  return wrapped(
    `Figures: ${title}`,
    ["metric", "cases", ...sides.map((each) => each.name), ...(compared ? ["difference"] : [])],
    metrics.map((metric) => [
      el("span", {}, metric.label, " ", el("span", { class: "small muted" }, metric.meaning)),
      String(Math.max(...metric.cells.map((each) => each?.n ?? 0))),
      ...metric.cells.map((each) => estimate(each, metric.share)),
      ...(compared ? [metric.difference?.words ?? "–"] : []),
    ]),
  );
}

/** The words, and for a share a bar with its interval. */
function estimate(found, share) {
  if (!found) return "–";
  if (!share) return found.words;
  const per = (value) => `${Math.round(1000 * value) / 10}%`;
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

function tags({ sides, tags: rows }) {
  if (!rows.length) return [];
  return [
    el("h2", {}, "Right answers by tag"),
    wrapped("By tag", ["tag", "questions", ...sides.map((each) => each.name)], rows.map((each) => [each.tag, String(each.questions), ...each.cells])),
  ];
}

function wrapped(label, heads, rows) {
  return el(
    "div",
    { class: "table-wrap", tabindex: "0", role: "region", "aria-label": label },
    el(
      "table",
      { class: "report-table" },
      el("thead", {}, el("tr", {}, ...heads.map((each) => el("th", { scope: "col" }, each)))),
      el("tbody", {}, ...rows.map(([first, ...others]) => el("tr", {}, el("th", { scope: "row", dir: "auto" }, first), ...others.map((each) => el("td", {}, each))))),
    ),
  );
}

function worst(each) {
  const expected = `Expected: ${each.expected || "nothing"}`;
  return linked(`#/run/${encodeURIComponent(each.run)}`, each.question, expected, each.outcome);
}
