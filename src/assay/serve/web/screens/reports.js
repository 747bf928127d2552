// Reports computed from the records: what was asked, which tools were used, where people overruled, how long it took.

import { at, get, query } from "../lib/api.js";
import { count, el, fill, money, percent, plural } from "../lib/dom.js";
import { waitingCount } from "../lib/navigation.js";
import { button, empty, failed, field, icon, loading, note, pageHead, region, spinner } from "../lib/ui.js";
import { plot } from "../runs/plot.js";
import { staleAnswers } from "../runs/stale_answers.js";

/** @type {Words} */
const REPORTS = {
  runs: "Runs",
  tools: "Tools",
  overrides: "Overrides",
  iterations: "Iterations",
  roles: "Roles",
  forecasts: "Forecasts",
  stale: "Stale answers",
};
const STALE = "stale"; // no report of figures: a list, as of now
const FAULTS = 20; // that are listed
const SHORT = 24; // characters that stay on one line
const SOME = 200; // rows at first
let range = { since: "", until: "" }; // as it was left

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  const name = params.report in REPORTS ? params.report : "runs";
  app.title(`Report: ${REPORTS[name]}`);
  const since = el("input", { type: "date", value: range.since });
  const until = el("input", { type: "date", value: range.until });
  const save = el("a", { class: "button small", download: `assay-${name}.csv` }, icon("download"), el("span", {}, "CSV"));
  const body = el("div", { class: "report-body" });
  const checked = el("div", { role: "status" });
  let turn = 0;
  fill(
    root,
    el(
      "div",
      { class: "page reports" },
      pageHead(
        "Reports",
        `Computed from the records of ${app.me.admin && name !== STALE ? "everybody" : "your own runs"}.`,
        app.me.admin ? button("Verify all records", { icon: "shield", on: verify }) : null,
      ),
      el(
        "div",
        { class: "report-bar" },
        el(
          "nav",
          { class: "segments links", "aria-label": "Which report" },
          ...Object.entries(REPORTS).map(([each, words]) => el("a", { href: `#/reports/${each}`, "aria-current": each === name ? "page" : null }, words, each === STALE ? waitingCount("answers") : null)),
        ),
        name === STALE ? null : el("div", { class: "report-range" }, field("From", since), field("To", until), save),
      ),
      checked,
      body,
    ),
  );

  /** Whether anything that was recorded was changed since. */
  async function verify(/** @type {Click} */ event) {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    fill(checked, el("p", { class: "note" }, spinner(), "Checking every record…"));
    try {
      fill(checked, verified(await get("/api/verify")));
    } catch (problem) {
      fill(checked, note("bad", "warning", problem.message));
    }
    pressed.disabled = false;
  }

  async function load() {
    const own = ++turn;
    range = { since: since.value, until: until.value };
    const path = at("api", "reports", name);
    save.setAttribute("href", query(path, { ...range, format: "csv" }));
    if (range.since && range.until && range.since > range.until) {
      fill(body, empty("The first day is after the last", "Choose them the other way round."));
      return;
    }
    if (!body.childElementCount) fill(body, loading("Counting…"));
    try {
      const shown = name === STALE ? await staleAnswers(app) : drawn(await get(query(path, range)));
      if (own === turn) fill(body, ...shown);
    } catch (problem) {
      if (own === turn && problem.status !== 401) fill(body, failed(problem, load));
      if (!("status" in problem)) console.error(problem);
    }
  }

  for (const each of [since, until]) each.addEventListener("change", load);
  await load();
  return () => {
    turn += 1;
  };
}

function verified(/** @type {VerificationResponse} */ found) {
  if (found.whole) return note(found.sealed ? "good" : "", "check", `${found.conclusion} ${plural(found.records, "entry", "entries")}, each linked to the one before it.`);
  return el(
    "div",
    { class: "note bad" },
    icon("warning"),
    el(
      "div",
      {},
      el("strong", {}, "The records were changed after they were written."),
      el("ul", { class: "bullets" }, ...found.faults.slice(0, FAULTS).map((each) => el("li", {}, `${each.record}: ${each.what}`))),
      found.faults.length > FAULTS ? el("p", { class: "small" }, `And ${plural(found.faults.length - FAULTS, "more fault")}: \`assay verify\` lists them.`) : null,
    ),
  );
}

function drawn(/** @type {ReportTable} */ report) {
  return [
    el("div", { class: "report-lead" }, el("h2", {}, report.title), report.about ? el("p", { class: "muted" }, report.about) : null),
    ...(report.rows.length
      ? [
        report.charts?.length ? el("div", { class: "plots" }, ...report.charts.map(plot)) : null,
        table(report),
        meanings(report.columns),
      ]
      : [empty("Nothing in this time", "Choose other days, or ask something first.")]),
  ];
}

function table(/** @type {ReportTable} */ { title, columns, rows }) {
  const numeric = columns.map((_, place) => rows.some((row) => typeof row[place] === "number") && rows.every((row) => row[place] === null || typeof row[place] === "number"));
  const body = el("tbody", {}, ...rows.slice(0, SOME).map(line));
  const more = rows.length > SOME ? el("button", { type: "button", class: "link small" }, `Show all ${count(rows.length)} rows`) : null;
  more?.addEventListener("click", () => {
    body.append(...rows.slice(SOME).map(line));
    more.remove();
  });
  return el(
    "div",
    {},
    region(`Table: ${title}`, el(
      "table",
      { class: "report-table" },
      el("thead", {}, el("tr", {}, ...columns.map((column, place) => el("th", { scope: "col", class: numeric[place] ? "figure" : null, title: column.about || null }, column.name)))),
      body,
    )),
    more,
  );

  function line(/** @type {any[]} */ row) {
    return el("tr", {}, ...row.map((value, place) => cell(value, place)));
  }

  function cell(/** @type {any} */ value, /** @type {number} */ place) {
    const words = value === null ? "–" : typeof value === "number" ? figure(value, columns[place].name) : value;
    const look = numeric[place] ? "figure" : String(words).length < SHORT ? "nowrap" : null;
    return el(place ? "td" : "th", { scope: place ? null : "row", class: look, dir: place ? null : "auto" }, words);
  }
}

/** A number of a report as text. Rates are shown as per cent. */
function figure(/** @type {number} */ value, /** @type {string} */ name) {
  if (name.endsWith("rate")) return percent(value);
  if (/\b(?:money|cost|USD)\b/i.test(name)) return money(value);
  if (Number.isInteger(value)) return count(value);
  return Math.abs(value) >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(4)));
}

function meanings(/** @type {ReportTable["columns"]} */ columns) {
  const explained = columns.filter((column) => column.about);
  if (!explained.length) return null;
  return el(
    "details",
    { class: "fold" },
    el("summary", {}, "What the columns mean"),
    el("dl", { class: "meanings" }, ...explained.flatMap((column) => [el("dt", {}, column.name), el("dd", {}, column.about)])),
  );
}
