// Where one can go on this page: the screens, the links to them, and how much waits for this person.

import { get } from "./api.js";
import { count, el, fill } from "./dom.js";
import { icon } from "./ui.js";

export const SCREENS = [
  { at: /^\/?$/, module: "./screens/ask.js", name: "ask" },
  { at: /^\/thread\/([^/]+)$/, module: "./screens/ask.js", name: "ask", params: ["thread"] },
  { at: /^\/shared\/([^/]+)$/, module: "./screens/shared.js", name: "ask", params: ["thread"] },
  { at: /^\/documents(?:\/([^/]+))?$/, module: "./screens/documents.js", name: "documents", params: ["base"] },
  { at: /^\/document\/([^/]+)$/, module: "./screens/viewer.js", name: "documents", params: ["document"] },
  { at: /^\/runs$/, module: "./screens/trace.js", name: "runs", params: [] },
  { at: /^\/run\/([^/]+)$/, module: "./screens/trace.js", name: "runs", params: ["run"], alone: true },
  { at: /^\/diff\/([^/]+)\/([^/]+)$/, module: "./screens/diff.js", name: "runs", params: ["a", "b"], alone: true },
  { at: /^\/synthesis(?:\/([^/]+))?$/, module: "./screens/synthesis.js", name: "synthesis", params: ["run"] },
  { at: /^\/reviews$/, module: "./screens/reviews.js", name: "reviews", params: [] },
  { at: /^\/review\/([^/]+)$/, module: "./screens/review.js", name: "reviews", params: ["run"], alone: true },
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
  { name: "activity", hash: "#/runs", words: "Activity", drawn: "pulse", counts: "all" },
];
const SETTINGS = { name: "administration", hash: "#/settings", words: "Settings", drawn: "sliders", second: true };
/** Screens that share one link; they are tabs of one another. `counts`: what waits there. @type {Record<string, Tab[]>} */
const TABS = {
  activity: [
    { name: "runs", hash: "#/runs", words: "Runs", counts: "runs" },
    { name: "reviews", hash: "#/reviews", words: "Reviews", counts: "reviews" },
    { name: "reports", hash: "#/reports", words: "Reports", counts: "answers" },
    { name: "evaluations", hash: "#/evaluations", words: "Evaluations", admin: true },
    { name: "health", hash: "#/health", words: "Health", admin: true },
  ],
  administration: [
    { name: "settings", hash: "#/settings", words: "General", admin: true },
    { name: "model", hash: "#/model", words: "Model", admin: true },
    { name: "people", hash: "#/people", words: "People", admin: true },
  ],
};
const EVERY = 60_000; // milliseconds between looks at what waits
const SOON = 10_000; // going from screen to screen looks again, but not more often than this

/** The link that leads to a screen: its own, or the one it shares. */
export function placeOf(/** @type {string} */ name) {
  return Object.keys(TABS).find((each) => TABS[each].some((tab) => tab.name === name)) ?? name;
}

/** The list at the left. */
export function places(/** @type {MeResponse} */ me) {
  return el("nav", { class: "places", "aria-label": "Screens" }, ...[...PLACES, ...(me.admin ? [SETTINGS] : [])].map(place));
}

function place(/** @type {Place} */ each) {
  return el(
    "a",
    { class: ["place", each.second && "second"], href: each.hash, dataset: { place: each.name } },
    icon(each.drawn),
    el("span", {}, each.words),
    each.counts ? waitingCount(each.counts) : null,
  );
}

/** Above a screen: the others that share its link. A screen about one thing leads back to its list by itself. */
export function tabsAbove(/** @type {{name: string, alone?: boolean} | null} */ screen, /** @type {MeResponse} */ me) {
  const tabs = screen && !screen.alone ? TABS[placeOf(screen.name)]?.filter((each) => !each.admin || me.admin) ?? [] : [];
  if (tabs.length < 2) return null;
  const link = (/** @type {Tab} */ each) => el("a", { href: each.hash, dataset: { place: each.name } }, each.words, each.counts ? waitingCount(each.counts) : null);
  return el("nav", { class: "screen-tabs", "aria-label": placeOf(tabs[0].name) === "activity" ? "Activity" : "Settings" }, el("div", { class: "segments links" }, ...tabs.map(link)));
}

let known = { all: 0, runs: 0, reviews: 0, answers: 0 };

/** How much of this waits for this person: `all`, or what `GET /api/waiting` counts. It stays up to date. */
export function waitingCount(/** @type {string} */ what) {
  return told(el("span", { class: "waiting-count", dataset: { waiting: what } }));
}

function told(/** @type {HTMLElement} */ node) {
  const many = known[/** @type {keyof typeof known} */ (node.dataset.waiting)];
  return fill(node, ...(many ? [many > 99 ? "99+" : count(many), el("span", { class: "visually-hidden" }, " waiting for you")] : []));
}

/** Asks what waits, now and then. `look()` asks at once; `pass()` only if it is some time ago. */
export function watchWaiting() {
  let last = 0;
  let stopped = false;

  async function look() {
    if (stopped || document.hidden) return;
    last = performance.now();
    try {
      const found = await get("/api/waiting");
      if (stopped) return;
      known = { ...found, all: found.reviews + found.runs + found.answers };
      document.querySelectorAll("[data-waiting]").forEach(told);
    } catch {
      // the next look may say
    }
  }

  known = { all: 0, runs: 0, reviews: 0, answers: 0 };
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
