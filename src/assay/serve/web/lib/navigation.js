// Where one can go on this page: the screens, the links to them, and how many reviews wait for this person.

import { get, query } from "./api.js";
import { count, el, fill } from "./dom.js";
import { icon } from "./ui.js";

export const SCREENS = [
  { at: /^\/?$/, module: "./screens/ask.js", name: "ask" },
  { at: /^\/thread\/([^/]+)$/, module: "./screens/ask.js", name: "ask", params: ["thread"] },
  { at: /^\/shared\/([^/]+)$/, module: "./screens/shared.js", name: "ask", params: ["thread"] },
  { at: /^\/documents(?:\/([^/]+))?$/, module: "./screens/documents.js", name: "documents", params: ["base"] },
  { at: /^\/document\/([^/]+)$/, module: "./screens/viewer.js", name: "documents", params: ["document"] },
  { at: /^\/runs$/, module: "./screens/trace.js", name: "runs", params: [] },
  { at: /^\/run\/([^/]+)$/, module: "./screens/trace.js", name: "runs", params: ["run"] },
  { at: /^\/diff\/([^/]+)\/([^/]+)$/, module: "./screens/diff.js", name: "runs", params: ["a", "b"] },
  { at: /^\/synthesis(?:\/([^/]+))?$/, module: "./screens/synthesis.js", name: "synthesis", params: ["run"] },
  { at: /^\/reviews$/, module: "./screens/reviews.js", name: "reviews", params: [] },
  { at: /^\/review\/([^/]+)$/, module: "./screens/review.js", name: "reviews", params: ["run"] },
  { at: /^\/reports(?:\/([^/]+))?$/, module: "./screens/reports.js", name: "reports", params: ["report"] },
  { at: /^\/evaluations(?:\/([^/]+))?$/, module: "./screens/evaluations.js", name: "evaluations", params: ["evaluation"] },
  { at: /^\/health$/, module: "./screens/health.js", name: "health", params: [] },
  { at: /^\/model$/, module: "./screens/model.js", name: "model", params: [] },
  { at: /^\/settings$/, module: "./screens/settings.js", name: "settings", params: [] },
  { at: /^\/people$/, module: "./screens/people.js", name: "people", params: [] },
  { at: /^\/keys$/, module: "./screens/keys.js", name: "keys", params: [] },
];

/** What everybody uses; on a phone these are at the thumb. */
export const PLACES = [
  { name: "ask", hash: "#/", words: "Ask", drawn: "ask" },
  { name: "documents", hash: "#/documents", words: "Documents", drawn: "document" },
  { name: "synthesis", hash: "#/synthesis", words: "Synthesis", drawn: "layers" },
  { name: "runs", hash: "#/runs", words: "Runs", drawn: "clock" },
];
const OTHERS = [
  { name: "reviews", hash: "#/reviews", words: "Reviews", drawn: "shield" },
  { name: "reports", hash: "#/reports", words: "Reports", drawn: "chart" },
  { name: "evaluations", hash: "#/evaluations", words: "Evaluations", drawn: "target", admin: true },
  { name: "health", hash: "#/health", words: "Health", drawn: "pulse", admin: true },
  { name: "model", hash: "#/model", words: "Model", drawn: "chip", admin: true },
  { name: "settings", hash: "#/settings", words: "Settings", drawn: "sliders", admin: true },
  { name: "people", hash: "#/people", words: "People", drawn: "people", admin: true },
];
const EVERY = 60_000; // milliseconds between looks at what waits
const SOON = 10_000; // going from screen to screen looks again, but not more often than this

/** The list at the left: what everybody uses, and below it what some do. */
export function places(/** @type {MeResponse} */ me) {
  const others = OTHERS.filter((each) => !each.admin || me.admin).map((each) => ({ ...each, second: true }));
  return el("nav", { class: "places", "aria-label": "Screens" }, ...[...PLACES, ...others].map(place));
}

function place(/** @type {Place} */ each) {
  return el(
    "a",
    { class: ["place", each.second && "second"], href: each.hash, dataset: { place: each.name } },
    icon(each.drawn),
    el("span", {}, each.words),
    each.name === "reviews" ? el("span", { class: "waiting-count", dataset: { waiting: "" } }) : null,
  );
}

/**
 * How many reviews this person can decide, beside every link to them. `look()` asks again, at once; `pass()` only if it is some
 * time ago. A server without reviews is asked once.
 */
export function waitingReviews() {
  let last = 0;
  let none = false;
  let stopped = false;

  async function look() {
    if (none || stopped || document.hidden) return;
    last = performance.now();
    try {
      const found = await get(query("/api/reviews", { state: "waiting", limit: 100 }));
      if (!stopped) tell(found.reviews.filter((each) => each.may_decide).length);
    } catch (problem) {
      none = problem.status === 404;
    }
  }

  function tell(/** @type {number} */ many) {
    const words = many > 99 ? "99+" : count(many);
    for (const node of document.querySelectorAll("[data-waiting]")) {
      fill(node, ...(many ? [words, el("span", { class: "visually-hidden" }, " waiting for you")] : []));
    }
  }

  const timer = setInterval(look, EVERY);
  const pass = () => performance.now() - last > SOON && look();
  look();
  return {
    look,
    pass,
    stop: () => {
      stopped = true;
      clearInterval(timer);
    },
  };
}
