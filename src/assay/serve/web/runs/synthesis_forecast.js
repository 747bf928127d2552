// What a synthesis will take, before it starts. Only a forecast of just what is wished lets it be started.

import { post } from "../lib/api.js";
import { count, el, fill } from "../lib/dom.js";
import { basis, ranges } from "../answers/run_forecast.js";
import { button, icon, note } from "../lib/ui.js";
import { gauge } from "../documents/readiness.js";

/** The card beside the form. `ask(request, size)` forecasts anew for so many documents; `stale()` says that the request has changed meanwhile. */
export function forecasting(/** @type {App} */ app, /** @type {() => Promise<void>} */ start) {
  const result = el("div", { class: "forecast-result", role: "status", "aria-live": "polite" });
  const go = button("Start", { kind: "primary", icon: "right", on: begin, disabled: true });
  const node = el("aside", { class: "card forecast", "aria-label": "Forecast" }, el("h2", {}, "What it will take"), result, go);
  let turn = 0;

  function stale() {
    turn += 1;
    go.disabled = true;
    node.dataset.stale = "";
  }

  async function ask(/** @type {CreateSynthesisRequest} */ request, /** @type {number} */ size) {
    const own = ++turn;
    if (!size) return tell(el("p", { class: "muted" }, "Choose documents to see the forecast."));
    if (size === 1 && request.pipeline === "synthesis") return tell(el(
      "p",
      { class: "note" },
      icon("info"),
      "Comparing needs two documents. Choose another one, or “Sum up”.",
    ));
    try {
      const found = await post("/api/synthesis/forecast", request);
      if (own !== turn) return undefined;
      tell(...drawn(found));
      go.disabled = false;
      fill(go, icon(found.large ? "warning" : "right"), el("span", {}, found.large ? "Start anyway" : "Start"));
    } catch (problem) {
      if (own === turn && problem.status !== 401) tell(el("p", { class: "note bad" }, problem.message));
    }
    return undefined;
  }

  function tell(/** @type {Child[]} */ ...parts) {
    delete node.dataset.stale;
    fill(result, ...parts);
  }

  async function begin() {
    go.disabled = true;
    try {
      await start();
    } catch (problem) {
      go.disabled = false;
      app.toast(problem.message, "bad");
    }
  }

  tell(el("p", { class: "muted" }, "Choose documents to see the forecast."));
  return {
    node,
    ask,
    stale,
    close: () => {
      turn += 1;
    },
  };
}

function drawn(/** @type {SynthesisForecastResponse} */ found) {
  return [
    found.large ? note("warn", "warning", "This is a large one. Fewer documents or questions, or summing up, take less; you can stop it at any time.") : null,
    el(
      "dl",
      { class: "gauges tight" },
      gauge(found.documents, found.documents === 1 ? "document" : "documents"),
      gauge(about(found.questions), "questions"),
      gauge(found.calls ? about(found.calls) : "none", "model calls"),
      found.calls ? gauge(about(found.tokens), "tokens") : null,
      gauge(found.calls ? charge(found.money) : "no charge", "cost"),
      gauge(lasting(found.seconds), "time"),
    ),
    found.ranges ? ranges(found.ranges) : null,
    found.ranges ? el("p", { class: "small muted" }, basis(found.from_runs)) : null,
    ...found.lines.map((line) => el("p", { class: "small muted" }, line)),
  ];
}

/** Two figures: more would say that more is known. */
function about(/** @type {number} */ number) {
  const step = 10 ** Math.max(0, String(Math.round(number)).length - 2);
  return `~${count(Math.round(number / step) * step)}`;
}

function charge(/** @type {number | null} */ amount) {
  if (amount === null) return "price not known";
  return amount ? (amount >= 0.01 ? `~$${amount.toFixed(2)}` : "under $0.01") : "no charge";
}

function lasting(/** @type {number} */ time) {
  return time < 90 ? `~${Math.max(1, Math.round(time))} s` : time < 5400 ? `~${Math.round(time / 60)} min` : `~${(time / 3600).toFixed(1)} h`;
}
