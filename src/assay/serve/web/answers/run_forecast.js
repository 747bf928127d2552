// What something will take: low, likely and high, what it may take at most, and how far such forecasts were off.

import { post } from "../lib/api.js";
import { count, el, fill } from "../lib/dom.js";
import { button } from "../lib/ui.js";

/** @type {Words} */
const NAMES = { calls: "model calls", tokens: "tokens", money: "cost", seconds: "time" };
/** @type {Record<string, (amount: number) => string>} */
const SHOWN = { calls: round, tokens: round, money: charge, seconds: lasting };

/** A forecast in the question box, on demand. `wish()` is what would be asked; `stale()` says that it has changed. */
export function askForecast(/** @type {() => Asking} */ request) {
  const result = el("div", { class: "forecast-result-inline", role: "status" });
  const ask = button("What would it take?", { kind: "small", icon: "chart", on: look });
  const node = el("div", { class: "option run-forecast" }, ask, result);
  let turn = 0;

  async function look() {
    const own = ++turn;
    const given = request();
    if (!given.question) return fill(result, el("p", { class: "hint" }, "Type the question first."));
    ask.disabled = true;
    try {
      const found = await post("/api/forecast", given);
      if (own !== turn) return undefined;
      fill(result, ...drawn(found));
      result.scrollIntoView({ block: "nearest" });
    } catch (problem) {
      if (own === turn && problem.status !== 401) fill(result, el("p", { class: "small bad" }, problem.status === 404 ? "This server makes no forecasts." : problem.message));
    } finally {
      ask.disabled = false;
    }
    return undefined;
  }

  function stale() {
    turn += 1;
    fill(result);
  }

  return { node, stale };
}

/** The whole forecast. */
export function drawn(/** @type {ForecastResponse} */ found) {
  const [, ...rest] = found.lines; // the first says what the table does
  return [
    ranges(found),
    el("p", { class: "small muted" }, basis(found.from_runs)),
    ...rest.map((words) => el("p", { class: ["small", words.startsWith("Note:") ? "limit-note" : "muted"] }, words.replace(/^Note: (.)/, (_, first) => first.toUpperCase()))),
  ];
}

/** Low, likely and high as a small table; with the ceiling where there is one. */
export function ranges(/** @type {any} */ found) {
  const rows = Object.keys(NAMES).filter((name) => found[name] && typeof found[name] === "object");
  if (!rows.length) return null;
  const met = found.ceiling?.what; // what a ceiling would cut short
  const columns = ["Low", "Likely", "High", ...(met ? ["Ceiling"] : [])];
  return el(
    "table",
    { class: "ranges" },
    el("caption", { class: "visually-hidden" }, "Forecast: low, likely and high"),
    el(
      "thead",
      {},
      el("tr", {}, el("td", {}), ...columns.map((words) => el("th", { scope: "col", class: "figure" }, words))),
    ),
    el(
      "tbody",
      {},
      ...rows.map((name) => {
        const { low, likely, high } = found[name];
        const most = met ? [name === met ? found.ceiling.most : null] : [];
        return el(
          "tr",
          {},
          el("th", { scope: "row" }, NAMES[name]),
          ...[low, likely, high, ...most].map((each, place) => el(
            "td",
            { class: ["figure", place === 1 && "likely"] },
            Number.isFinite(each) ? SHOWN[name](each) : place < 3 ? "–" : "",
          )),
        );
      }),
    ),
  );
}

/** What the ranges rest on. */
export function basis(/** @type {number} */ runs) {
  if (!runs) return "An estimate without history: no similar run is on record yet.";
  return `From ${count(runs)} earlier ${runs === 1 ? "one" : "ones"}.`;
}

/** Two figures: more would say that more is known. */
export function round(/** @type {number} */ number) {
  const step = 10 ** Math.max(0, String(Math.round(number)).length - 2);
  return count(Math.round(number / step) * step);
}

export function charge(/** @type {number | null} */ amount) {
  if (amount === null) return "price not known";
  return amount ? (amount >= 0.01 ? `$${amount.toFixed(2)}` : "under $0.01") : "none";
}

export function lasting(/** @type {number} */ time) {
  if (time < 90) return `${Math.max(1, Math.round(time))} s`;
  return time < 5400 ? `${Math.round(time / 60)} min` : `${(time / 3600).toFixed(1)} h`;
}

