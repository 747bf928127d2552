// One turn of a conversation: the question, the run while it works, and what became of it.

import { at, follow, get, post, query } from "../lib/api.js";
import { answerView } from "./answer.js";
import { checkpointView } from "./checkpoint.js";
import { awaitingReviewView, rejectedView, withheldView } from "./review_status.js";
import { el, fill } from "../lib/dom.js";
import { actions, button, failed, icon, iconButton, loading, submit, traceLink } from "../lib/ui.js";
import * as tale from "../runs/story.js";
import { workingView } from "./progress.js";
import { recheckView } from "./recheck.js";
import { suggestions } from "./suggestions.js";

/**
 * `run` is a `RunWhole`, or `{id, asked, state: "running"}` of one that has just begun. `context.changed(turn)` hears whenever the
 * run begins, ends or waits. The turn looks after its own stream; `close` ends it.
 */
export function turnView(/** @type {RunView} */ run, /** @type {TurnContext} */ context) {
  const app = context.app;
  const path = at("api", "runs", run.id);
  const body = el("div", { class: "turn-body" });
  const heading = el("h2", { class: "question", tabindex: "-1" }, run.asked);
  const pencil = iconButton("pencil", "Edit the question and ask again", () => edit());
  const asked = el("div", { class: "asked" }, heading, pencil);
  const node = el(
    "article",
    { class: "turn", dataset: { run: run.id }, "aria-label": "Question and answer" },
    asked,
    body,
  );
  /** @type {Turn} */
  const turn = { id: run.id, node, heading, run, pieces, close, stop, suggest, edit };
  let story = tale.begin();
  let stream = /** @type {Stream | null} */ (null);
  let clock = 0;
  let shown = /** @type {Working | null} */ (null);
  let frame = 0;
  let waiting = 0;
  let closed = false;

  function close() {
    closed = true;
    quiet();
  }

  function quiet() {
    stream?.close();
    stream = null;
    clearInterval(clock);
    clearInterval(waiting);
    cancelAnimationFrame(frame);
    frame = 0;
  }

  /** The evidence as it stands: of the delivered run, or of the story so far. */
  function pieces() {
    return turn.run.state === "delivered" ? turn.run.evidence : [...story.evidence.values()];
  }

  // While it works

  function watch() {
    quiet();
    story = tale.begin();
    const view = (shown = workingView(context, { stop, openEvidence: (from) => context.openEvidence(run.id, from) }));
    fill(body, view.node);
    const from = performance.now() - (turn.run.seconds ?? 0) * 1000;
    const tick = () => view.spent((performance.now() - from) / 1000);
    clock = setInterval(tick, 500);
    tick();
    view.draw(story);
    stream = follow(`${path}/events`, {
      event: (_, shape) => {
        const phase = story.phase;
        tale.take(story, shape);
        if (story.phase !== phase) app.announce(story.phase);
        frame ||= requestAnimationFrame(drawn);
      },
      statements: (now) => {
        tale.tellStatements(story, now);
        frame ||= requestAnimationFrame(drawn);
      },
      retrying: (line) => view.trouble(line),
      end: () => settle(),
      broken: () => view.connection("The connection was lost. Trying again; nothing of the run is lost."),
      back: () => view.connection(""),
      parked: () => view.connection("The server is closing. The run is kept, and goes on when the server is back."),
    });
  }

  function drawn() {
    frame = 0;
    if (closed) return;
    shown?.draw(story);
    context.gathered(turn);
  }

  async function stop(/** @type {Pressed} */ button_ = null) {
    stopping(button_, true);
    try {
      await post(`${path}/cancel`);
      if (turn.run.state === "running") await settle();
    } catch (problem) {
      app.toast(problem.message, "bad");
      stopping(button_, false);
    }
  }

  // What became of it

  async function settle(tries = 0) {
    try {
      const now = await get(path);
      if (closed) return;
      if (now.state === "running" && turn.run.state === "running" && stream && tries === 0) {
        // its stream has ended, and somebody has carried it on meanwhile
        turn.run = now;
        watch();
        return;
      }
      if (now.state === "parked" && tries < 4) {
        setTimeout(() => closed || settle(tries + 1), 700); // a server that has just started takes its runs up again
        return;
      }
      if (now.state === turn.run.state && now.events === turn.run.events) return; // as it is shown already
      show(now);
      app.announce(SAID[now.state] ?? "");
    } catch (problem) {
      if (closed || problem.status === 401) return;
      quiet();
      fill(body, failed(problem, () => settle()));
    }
  }

  async function show(/** @type {RunView} */ now) {
    quiet();
    turn.run = now;
    heading.textContent = now.asked || now.question;
    pencil.hidden = now.state === "running" || !context.again;
    if (now.state === "running") {
      watch();
    } else if (now.state === "delivered" && !now.answer) {
      fill(body, withheldView(now), recheckView(now.recheck, app));
    } else if (now.state === "delivered") {
      fill(body, understoodAs(now), askedBefore(), answerView(now, context, how()));
    } else {
      const story_ = el("div", { class: "so-far" });
      const rest = now.state === "waiting" ? waitingView(now) : HALTED[now.state]?.(now) ?? haltedView(now);
      fill(body, rest, story_);
      if (now.state === "held") {
        waiting = setInterval(() => document.hidden || settle(9), LOOK); // somebody else decides; nothing is streamed meanwhile
        app.reviewsChanged();
      }
      context.changed(turn); // before the record is read, which may take a moment
      await soFar(story_);
    }
    context.changed(turn);
  }

  function waitingView(/** @type {RunView} */ now) {
    const waits = /** @type {Paused} */ (now.waiting);
    const extra = waits.at === "sources" && now.evidence.length ? sourcesSoFar(now) : null;
    return checkpointView(waits, (choice, words) => carryOn("choice", { choice, words }), extra);
  }

  function sourcesSoFar(/** @type {RunView} */ now) {
    const titles = [...new Map(now.evidence.map((piece) => [piece.document, piece])).values()];
    return el(
      "div",
      { class: "sources-so-far" },
      el(
        "ul",
        { class: "chips" },
        ...titles.slice(0, 12).map((piece) => el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "chip", on: { click: (event) => context.openDocument(piece, event.currentTarget) } },
            icon("document", 14),
            el("span", { class: "clip" }, piece.title),
          ),
        )),
      ),
      button(
        `See the evidence (${now.evidence.length})`,
        { kind: "quiet small", icon: "list", on: (event) => context.openEvidence(run.id, event.currentTarget) },
      ),
    );
  }

  function haltedView(/** @type {RunView} */ now) {
    const [title, words, kind] = /** @type {Table} */ ({
      cancelled: now.statements?.length
        ? ["Stopped", "You stopped this run while its answer was written. The statements below had passed their check; others are missing.", ""]
        : ["Stopped", "You stopped this run. What it did is kept.", ""],
      failed: ["This run could not go on", now.failure?.detail || "Something went wrong.", "bad"],
      parked: [
        "This run was cut off",
        "The server or the terminal that carried it stopped. What it did is kept.",
        "warn",
      ],
    })[now.state] ?? ["This run has ended", "", ""];
    return el(
      "section",
      { class: "halted card" },
      el(
        "p",
        { class: `note ${kind}`, role: now.state === "failed" ? "alert" : null },
        icon(now.state === "cancelled" ? "stop" : "warning"),
        el("span", {}, el("strong", {}, title), el("br"), words),
      ),
      el(
        "div",
        { class: "actions" },
        button(
          "Carry on",
          { kind: "primary", icon: "again", on: (event) => carryOn("resume", undefined, event.currentTarget) },
        ),
        traceLink(run.id, ""),
      ),
    );
  }

  /** Send a choice or a request to go on, and follow again; true if that worked. */
  async function carryOn(/** @type {"choice" | "resume"} */ what, /** @type {ChoiceRequest | undefined} */ given, /** @type {Pressed} */ button_ = null) {
    if (button_) button_.disabled = true;
    try {
      await post(`${path}/${what}`, given);
    } catch (problem) {
      app.toast(problem.message, "bad");
      if (button_) button_.disabled = false;
      settle(9); // how it really stands
      return false;
    }
    turn.run = { ...turn.run, state: "running", waiting: null, failure: null };
    watch();
    context.changed(turn);
    heading.focus({ preventScroll: true });
    return true;
  }

  /** How far it got, from its record. */
  async function soFar(/** @type {HTMLElement} */ root, delivered = false) {
    try {
      const recorded = await get(query(`${path}/events`, { format: "json" }));
      if (closed) return;
      story = tale.begin();
      const reviewed = turn.run.state === "held" || turn.run.state === "rejected"; // its statements are the reviewer's to see
      for (const shape of recorded.events) if (!reviewed || !tale.STATEMENTS.has(shape.kind)) tale.take(story, shape);
      if (turn.run.statements?.length) tale.tellStatements(story, turn.run.statements);
      const past = workingView(context, { delivered, openEvidence: (from) => context.openEvidence(run.id, from) });
      past.still();
      past.draw(story);
      fill(root, past.node);
    } catch (problem) {
      if (!closed && problem.status !== 401) fill(root, failed(problem, () => soFar(root, delivered)));
    }
  }

  function how() {
    const inside = el("div", { class: "fold-body" });
    let opened = false;
    return el(
      "details",
      {
        class: "fold how",
        on: {
          toggle: () => {
            if (opened) return;
            opened = true;
            fill(inside, loading("Reading the record…"));
            soFar(inside, true);
          },
        },
      },
      el("summary", {}, "How this was found"),
      inside,
    );
  }

  /** What could be asked next, under a delivered answer, once. `ask(question)` asks it. */
  function suggest(/** @type {(question: string) => unknown} */ ask) {
    if (turn.run.state !== "delivered" || !turn.run.answer?.citations.length || body.querySelector(".suggestions")) return;
    body.append(suggestions(`${path}/follow-ups`, "You could ask next", ask));
  }

  /** The question as a text to change; what is asked then is a turn of its own. */
  function edit() {
    const box = el("textarea", { rows: "3", maxlength: "4000", "aria-label": "The question, to change", value: heading.textContent ?? "" });
    const back = () => {
      fill(asked, heading, pencil);
      pencil.focus();
    };
    const form = el("form", { class: "asked-form" }, box, actions(submit("Ask again"), button("Cancel", { on: back })));
    const send = () => {
      const question = box.value.trim();
      if (!question) return;
      back();
      context.again?.(turn.run, { question, mode: turn.run.mode });
    };
    form.addEventListener("submit", (event) => (event.preventDefault(), send()));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") back();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.target !== box) return;
      event.preventDefault();
      send();
    });
    fill(asked, form);
    box.focus();
  }

  /** The way to compare with the answer that the same question had before. */
  function askedBefore() {
    const before = context.before?.(turn);
    if (!before) return null;
    const compare = `#/diff/${encodeURIComponent(before.id)}/${encodeURIComponent(run.id)}`;
    return el("p", { class: "understood" }, "Asked again. ", el("a", { href: compare }, "Compare with the answer before"));
  }

  function understoodAs(/** @type {RunView} */ now) {
    return now.understood ? el("p", { class: "understood" }, "Understood as: ", el("q", {}, now.understood)) : null;
  }

  show(run);
  return turn;
}

function stopping(/** @type {Pressed} */ pressed, /** @type {boolean} */ on) {
  if (!pressed) return;
  pressed.disabled = on;
  fill(/** @type {HTMLElement} */ (pressed.querySelector("span")), on ? "Stopping…" : "Stop");
}

/** @type {Record<string, (run: RunView) => HTMLElement>} */
const HALTED = { held: awaitingReviewView, rejected: rejectedView };
const LOOK = 8000; // milliseconds between looks whether a review was decided
/** @type {Words} */
const SAID = {
  held: "The answer is ready and waits for a reviewer.",
  rejected: "The answer was not approved.",
  delivered: "The answer is ready.",
  waiting: "The run waits for you.",
  failed: "The run could not go on.",
  cancelled: "Stopped.",
  parked: "The run was cut off.",
};
