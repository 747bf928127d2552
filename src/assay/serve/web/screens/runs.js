// The list of runs: what was asked, when, and what came of it.

import { at, get, query } from "../lib/api.js";
import { ago, el, fill } from "../lib/dom.js";
import { paged } from "../lib/paged_list.js";
import { badge, empty, icon } from "../lib/ui.js";

const PAGE = 50;
/** @type {Table} */
const STATES = {
  running: ["again", "running", "info"],
  waiting: ["person", "waits for you", "warn"],
  failed: ["close", "failed", "bad"],
  cancelled: ["stop", "stopped", ""],
  parked: ["clock", "parked", "warn"],
  held: ["shield", "waits for a reviewer", "warn"],
  rejected: ["close", "rejected in review", "bad"],
};
/** @type {Table} */
const OUTCOMES = {
  answered: ["check", "answered", "good"],
  partial: ["half", "answered in part", "warn"],
  abstained: ["minus", "no answer in the documents", ""],
  direct: ["ask", "not from the documents", ""],
};

/** How a run stands, in a sign and a word. */
export function standing(/** @type {RunSummary} */ run) {
  const [sign, words, kind] = (run.state === "delivered" ? OUTCOMES[run.outcome ?? ""] : STATES[run.state]) ?? ["info", run.state, ""];
  const own = run.kind === "synthesis" && run.outcome === "answered" && run.state === "delivered" ? "done" : words;
  return badge([icon(sign, 13), own], kind);
}

export function showRuns(/** @type {HTMLElement} */ root, /** @type {App} */ app) {
  app.title("Runs");
  const screen = el(
    "div",
    { class: "page" },
    el(
      "header",
      { class: "page-head" },
      el("div", {}, el("h1", {}, "Runs"), el("p", { class: "muted" }, "Every question and every synthesis, with the record of how it was answered.")),
    ),
  );
  fill(root, screen);
  const pages = paged(screen, {
    label: "Runs",
    fetch: async (after) => {
      const page = await get(query("/api/runs", { after, limit: PAGE }));
      return { items: page.runs, next: page.next, total: null };
    },
    row: runRow,
    none: () => empty("No runs yet", "What you ask is recorded here, step by step.", el("a", { class: "button primary", href: "#/" }, "Ask a question")),
  });
  pages.restart();
  return pages.close;
}

export function runRow(/** @type {RunSummary} */ run) {
  const more = [run.kind === "synthesis" ? "Synthesis" : `Question, ${run.mode}`, ago(run.started)];
  const links = [];
  if (run.thread) links.push(el("a", { href: `#${at("thread", run.thread)}` }, "in its thread"));
  if (run.kind === "synthesis") links.push(el("a", { href: `#${at("synthesis", run.id)}` }, "the account"));
  return el(
    "li",
    { class: "row run-row" },
    el(
      "div",
      { class: "grow" },
      el("a", { class: "row-title", href: `#${at("run", run.id)}`, dir: "auto" }, run.question || "(erased)"),
      el("p", { class: "row-more" }, more.join(" · "), links.length ? " · " : "", ...links),
    ),
    standing(run),
  );
}
