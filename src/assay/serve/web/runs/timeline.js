// A run's events as stretches of time: how long each took, what belongs together, and the sums. Pure.

import { IDLE } from "./stages.js";
import { spend } from "./story.js";

const WAITS = new Set(["Paused", "Failed", "AwaitingReview"]); // after these nobody is at work
/** @type {Words} */
export const FAMILY_WORDS = { course: "Course", models: "Model calls", searches: "Searches", evidence: "Evidence", writing: "Writing" };

/** Whether an event is there without its words: they were erased, or whoever looks may not read them (any more). */
export const isWithheld = (/** @type {EventView} */ { event }) => !Object.keys(event).length;

/**
 * Each event with `start` and `end` in milliseconds at work since the question. A record says when something was finished:
 * a model's reply began as long before as it took, everything else where the event before it ended. Waiting is left out.
 */
export function spans(/** @type {EventView[]} */ events) {
  let clock = 0;
  let before = /** @type {{ when: number; kind: string } | null} */ (null);
  return events.map((shape) => {
    const when = Date.parse(shape.at);
    const gone = before === null ? 0 : Math.max(0, when - before.when);
    const took = shape.kind === "ModelReplied" ? 1000 * (shape.event.usage?.seconds ?? 0) : 0;
    const waited = before !== null && (WAITS.has(before.kind) || (gone > IDLE && took < gone / 2)) ? gone : 0;
    const begun = clock;
    clock += gone - waited;
    before = { when, kind: shape.kind };
    return { shape, start: shape.kind === "ModelReplied" ? Math.max(0, clock - took) : begun, end: clock, waited };
  });
}

/** What the run has taken: by the replies that were recorded. */
export function sums(/** @type {EventView[]} */ events) {
  const all = { calls: 0, tokens_in: 0, tokens_out: 0, money: 0, rounds: 0 };
  for (const { kind, event } of events) {
    if (kind === "Decided" && isRound(event)) all.rounds += 1;
    if (kind !== "ModelReplied") continue;
    spend(all, event.usage);
  }
  return all;
}

function isRound(/** @type {Record<string, any>} */ event) {
  return event.calls?.length > 0 && !event.seeks?.length && !event.hops && !event.recalls;
}

/** Events under the headings a reader looks for: rounds of a question, stages of a synthesis. */
export function stretches(/** @type {Timed[]} */ timed) {
  const synthesis = Boolean(timed[0]?.shape.event.brief);
  const found = /** @type {Section[]} */ ([]);
  let rounds = 0;
  let name = "";
  const waiting = /** @type {Timed[]} */ ([]); // replies of a model belong to what was made of them, which comes next
  for (const each of timed) {
    waiting.push(each);
    if (each.shape.kind === "ModelReplied") continue;
    if (each.shape.kind === "Decided" && isRound(each.shape.event)) rounds += 1;
    name = (synthesis ? stageOf(each.shape) : partOf(each.shape, rounds)) ?? (name || "Beginning");
    into(name).push(...waiting.splice(0));
  }
  if (waiting.length) into(found.at(-1)?.name ?? "Beginning").push(...waiting);
  return found;

  function into(/** @type {string} */ heading) {
    let last = found.at(-1);
    if (last?.name !== heading) found.push((last = { name: heading, events: [] }));
    return last.events;
  }
}

function partOf(/** @type {EventView} */ { kind, event, family }, /** @type {number} */ rounds) {
  if (["Asked", "HistorySummarised", "Rephrased", "Routed", "Planned"].includes(kind)) return rounds ? undefined : "Understanding the question";
  if (kind === "Decided") {
    if (event.recalls) return "What earlier turns found";
    if (event.seeks?.length) return "Looking for support";
    return isRound(event) ? `Round ${rounds}` : undefined;
  }
  if (["AwaitingReview", "Reviewed"].includes(kind)) return "Review";
  return family === "writing" ? "Writing and checking" : undefined;
}

/** @type {Words} */
const STAGES = {
  Asked: "What was asked for", Described: "Documents", Questioned: "Questions", Merged: "Questions", PassagesChosen: "Evidence", Gathered: "Evidence",
  Covered: "Coverage", InsightsDrawn: "Insights", Paired: "Relations", Related: "Relations", SpineWritten: "The thread", Drafted: "Writing and checking",
  Checked: "Writing and checking", Revised: "Writing and checking", Translated: "Other readers", Answered: "Account",
  AwaitingReview: "Review", Reviewed: "Review",
};

function stageOf(/** @type {EventView} */ { kind, event }) {
  const name = STAGES[kind];
  return name && event.pass_ > 1 ? `${name}, once more` : name;
}

/** A tool call by its id, from the decisions so far. */
export function callsOf(/** @type {EventView[]} */ events) {
  return new Map(events.filter(({ kind }) => kind === "Decided").flatMap(({ event }) => /** @type {Recorded["Call"][]} */ (event.calls ?? []).map((call) => /** @type {const} */ ([call.id, call]))));
}
