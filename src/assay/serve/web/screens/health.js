// Health, for an operator: whether the server can answer, which model it uses, and the watched figures with their limits.

import { at, get } from "../lib/api.js";
import { el, fill, percent } from "../lib/dom.js";
import { badge, bullets, button, failed, figureCell, grid, icon, loading, note, pageHead } from "../lib/ui.js";

const REPORT = /** @type {string} */ ("health");
const EVERY = 60_000; // milliseconds between looks
/** @type {Table} */
const STATES = { ok: ["within its limit", "good"], alarm: ["alarm", "bad"], "–": ["no data", ""] };

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Health");
  const body = el("div", { class: "report-body", role: "status" });
  let stopped = false;
  fill(
    root,
    el(
      "div",
      { class: "page reports" },
      pageHead("Health", "What an operator watches. Looked at again every minute.", button("Look again", { icon: "again", on: load })),
      body,
    ),
  );

  async function load() {
    if (!body.childElementCount) fill(body, loading());
    try {
      const [ready, report] = await Promise.all([readiness(), get(at("api", "reports", REPORT))]);
      if (!stopped) fill(body, server(ready, app.me), figures(report));
    } catch (problem) {
      if (!stopped && problem.status !== 401) fill(body, failed(problem, load));
      if (!("status" in Object(problem))) console.error(problem);
    }
  }

  const timer = setInterval(() => document.hidden || load(), EVERY);
  await load();
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}

/** What `/ready` says; a server that is not ready answers with 503 and its problems. */
async function readiness() {
  const reply = await fetch("/ready", { headers: { Accept: "application/json" } });
  return reply.json();
}

function server(/** @type {ReadyResponse} */ ready, /** @type {MeResponse} */ me) {
  const lines = [
    ["Version", me.version],
    ["Model", [me.model || "none: answers are quotations", " ", el("a", { href: "#/model" }, "Change")]],
    ...(me.judge ? [["Judgement", me.judge]] : []),
    ...(me.leaves.length ? [["Not agreed to yet", me.leaves.join(", ")]] : []),
    ["Sign-in", { off: "none: one local user", keys: "passwords and API keys", header: "by a proxy" }[me.auth] ?? me.auth],
  ];
  return el(
    "section",
    { "aria-label": "The server" },
    ready.ready
      ? note("good", "check", "The server is ready for questions.")
      : el(
        "div",
        { class: "note bad" },
        icon("warning"),
        el("div", {}, el("strong", {}, "The server is not ready."), bullets(ready.problems)),
      ),
    el("dl", { class: "meanings" }, ...lines.flatMap(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])),
  );
}

function figures(/** @type {ReportTable} */ { title, about, columns, rows }) {
  const place = Object.fromEntries(columns.map((column, at) => [column.name, at]));
  const alarms = rows.filter((row) => row[place.state] === "alarm").length;
  return el(
    "section",
    { "aria-label": "Watched figures" },
    el("div", { class: "report-lead" }, el("h2", {}, title), el("p", { class: "muted" }, about)),
    alarms ? note("bad", "warning", `${alarms} of ${rows.length} figures are past their limits.`) : null,
    grid("Table: watched figures", ["Figure", "Value", "Alarm", "Goal", "State"], rows.map(line), "report-table"),
    el("p", { class: "small muted" }, "The same limits are in the alert rules that `assay monitor alerts` prints. ", el("a", { href: "#/reports" }, "Reports"), " has the figures by week."),
  );

  function line(/** @type {any[]} */ row) {
    const [words, kind] = STATES[row[place.state]];
    return [
      el("th", { scope: "row" }, row[place.about]),
      figureCell(value(row[place.value], row[place.alarm])),
      el("td", { class: "nowrap" }, row[place.alarm]),
      el("td", { class: "nowrap" }, row[place.goal]),
      badge(words, kind),
    ];
  }
}

/** A figure in the unit of its limit: `over 10 %`, `over 30 s`, `over 8`. */
function value(/** @type {any} */ number, /** @type {string} */ limit) {
  if (number === null) return "–";
  if (limit.endsWith("%")) return percent(number);
  return `${Number(number.toPrecision(3))}${limit.endsWith("s") ? " s" : ""}`;
}
