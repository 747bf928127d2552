// How far a synthesis is, from its events. `grow` takes one event in; `stagesOf` says it as a person would. Pure.

import { dotted, plural } from "../lib/dom.js";
import { spend } from "./story.js";

export const IDLE = 600_000; // milliseconds without any event, after which nobody was at work
const EXPERT = "expert"; // the account itself; every other audience is a telling of it

export function begun() {
  return {
    brief: /** @type {Recorded["Brief"] | null} */ (null),
    titles: /** @type {Words} */ ({}),
    described: new Set(),
    questions: new Map(),
    evidence: new Map(),
    covered: /** @type {Recorded["Covered"][]} */ ([]),
    read: new Set(),
    insights: new Map(),
    paired: /** @type {Recorded["Paired"] | null} */ (null),
    relations: /** @type {Recorded["Relation"][]} */ ([]),
    spun: /** @type {Recorded["SpineWritten"] | null} */ (null),
    drafted: false,
    written: new Set(),
    checked: new Map(),
    translated: new Set(),
    usage: { calls: 0, tokens_in: 0, tokens_out: 0, money: 0 },
    last: /** @type {number | null} */ (null),
    active: 0,
    answered: false,
    failed: /** @type {Recorded["Failed"] | null} */ (null),
  };
}

/** Take in one event, as the API gives it. */
export function grow(/** @type {SynthesisSoFar} */ so, /** @type {EventView} */ { kind, event, at, documents }) {
  const when = Date.parse(at);
  const gone = so.last === null || so.failed ? 0 : when - so.last; // what it waited for does not count
  so.active += gone < IDLE ? gone : 0;
  so.last = when;
  so.failed = null;
  Object.assign(so.titles, documents);
  if (Object.keys(event).length) /** @type {any} */ (GROWTH)[kind]?.(so, event); // of what is withheld nothing is told
  return so;
}

/** @type {Taking<SynthesisSoFar>} */
const GROWTH = {
  Asked: (so, event) => {
    so.brief = event.brief ?? null;
  },
  Described: (so, { portrait }) => {
    so.described.add(portrait.doc_id);
    so.titles[portrait.doc_id] = portrait.title || so.titles[portrait.doc_id];
  },
  Merged: (so, event) => event.questions.forEach((each) => so.questions.set(each.id, each.text)),
  Gathered: (so, event) => {
    for (const each of event.evidence) so.evidence.set(each.key, each.quote.doc_id);
  },
  Covered: (so, event) => so.covered.push(event),
  InsightsDrawn: (so, event) => {
    if (event.doc_id) so.read.add(event.doc_id);
    for (const each of event.insights) so.insights.set(each.id, each.doc_id);
  },
  Paired: (so, event) => {
    so.paired = event;
  },
  Related: (so, event) => so.relations.push(...event.relations),
  SpineWritten: (so, event) => {
    so.spun = event;
  },
  Drafted: (so, event) => {
    so.drafted = true;
    so.checked.clear();
    so.written = new Set(event.blocks.flatMap((block) => block.claims).keys());
  },
  Checked: (so, event) => so.checked.set(event.place, event.claim.verdict),
  Revised: (so, event) => {
    so.checked.delete(event.place);
    if (!event.claim) so.written.delete(event.place);
  },
  Translated: (so, event) => so.translated.add(event.translation.audience),
  Answered: (so) => {
    so.answered = true;
  },
  Failed: (so, event) => {
    so.failed = event;
  },
  ModelReplied: (so, { usage }) => {
    spend(so.usage, usage);
  },
};

/** The whole way: each stage with its name, what is done of it (0 to 1), and how far it is in words. @returns {Stage[]} */
export function stagesOf(/** @type {SynthesisSoFar} */ so) {
  if (!so.brief) return [];
  const all = [...reading(so, so.brief), ...(so.brief.pipeline === "synthesis" ? [relating(so)] : []), ...telling(so, so.brief)];
  const now = so.answered ? -1 : all.findIndex((stage) => stage.done < 1);
  return all.map((stage, place) => ({ ...stage, state: stage.done >= 1 || so.answered ? "done" : place === now ? "now" : "later" }));
}

function reading(/** @type {SynthesisSoFar} */ so, /** @type {Recorded["Brief"]} */ brief) {
  const documents = brief.documents.length;
  const asked = so.questions.size;
  const again = so.covered[0]?.thin?.length ?? 0;
  const whole = so.covered.length > 0 && (so.covered.length > 1 || !again);
  const read = so.read.size / documents;
  return [
    stage("Describe", so.described.size / documents, `${so.described.size} of ${plural(documents, "document")}`, so.described.size),
    stage(
      "Read",
      whole || so.paired ? 1 : Math.min(0.98, read),
      dotted(
        so.read.size ? `${so.read.size} of ${plural(documents, "document")}` : "",
        asked ? `${plural(asked, "question")} to long documents` : "",
        plural(so.evidence.size, "quotation"),
        again ? `${plural(again, "document")} read again` : "",
      ),
      so.read.size || asked || so.evidence.size,
    ),
    stage("Compare", so.paired ? 1 : whole ? 0.5 : 0, so.paired?.how ?? "", so.paired),
  ];
}

/** Relations found, and the plan of the text made of them. */
function relating(/** @type {SynthesisSoFar} */ so) {
  const types = new Map();
  for (const { type } of so.relations) types.set(type, (types.get(type) ?? 0) + 1);
  const named = [...types].sort((a, b) => b[1] - a[1]).map(([type, number]) => `${number} ${type}`);
  const far = dotted(named.join(", "), so.spun?.theme);
  return stage("Relate documents", so.spun || so.drafted ? 1 : so.paired ? 0.5 : 0, far, far);
}

function telling(/** @type {SynthesisSoFar} */ so, /** @type {Recorded["Brief"]} */ brief) {
  const wanted = (brief.audiences ?? []).filter((each) => each !== EXPERT);
  const hold = [...so.checked.values()].filter((verdict) => verdict === "supported").length;
  const checked = so.drafted ? (so.written.size ? so.checked.size / so.written.size : 1) : 0;
  const stages = [
    stage("Write", so.drafted ? 1 : 0, plural(so.written.size, "claim"), so.drafted),
    stage("Check every claim", checked, `${hold} of ${so.written.size} hold`, so.drafted),
  ];
  if (wanted.length) stages.push(stage("Write for other readers", so.translated.size / wanted.length, [...so.translated].join(", "), so.translated.size));
  return stages;
}

function stage(/** @type {string} */ name, /** @type {number} */ done, /** @type {string} */ far, /** @type {unknown} */ has) {
  return { name, done, far: has ? far : "" };
}

/** What has come of each document so far: 0 not looked at, 1 described, 2 quoted, 3 with insights. */
export function documentsOf(/** @type {SynthesisSoFar} */ so) {
  const quoted = new Map();
  for (const doc of so.evidence.values()) quoted.set(doc, (quoted.get(doc) ?? 0) + 1);
  const drawn = new Map();
  for (const doc of so.insights.values()) drawn.set(doc, (drawn.get(doc) ?? 0) + 1);
  return (so.brief?.documents ?? []).map((id, place) => ({
    id,
    label: `D${place + 1}`,
    title: so.titles[id] ?? "",
    quotations: quoted.get(id) ?? 0,
    insights: drawn.get(id) ?? 0,
    level: drawn.has(id) ? 3 : quoted.has(id) ? 2 : so.described.has(id) ? 1 : 0,
  }));
}
