// A run as a story: what a person sees of its events. No DOM here; the same events always tell the same story.

export function begin() {
  return {
    seen: -1, // number of the last event
    phase: "Starting",
    question: "",
    understood: "",
    route: /** @type {Recorded["Routed"] | null} */ (null),
    steps: /** @type {(Recorded["PlanStep"] & { value: string })[]} */ ([]),
    moves: /** @type {Move[]} */ ([]), // what was decided
    evidence: /** @type {Map<string, Piece>} */ (new Map()), // by key
    kept: new Set(), // ids of passages that are evidence
    missing: /** @type {string[]} */ ([]),
    claims: /** @type {Map<number, ToldClaim>} */ (new Map()), // by place
    gap: "",
    usage: { calls: 0, tokens_in: 0, tokens_out: 0, money: 0 },
    titles: /** @type {Words} */ ({}), // of documents, by id
    pages: /** @type {Record<string, number>} */ ({}), // on which quotations begin, by the key of their evidence
  };
}

/** Events that tell of statements, before whoever may see them has said so. */
export const STATEMENTS = new Set(["Claimed", "Drafted", "Checked", "Revised", "Critiqued", "Answered"]);

/**
 * Take up what is told of the statements so far: in words what passed the check, without words what is still being checked. What
 * stood there before and does not any more stays in sight, struck out.
 */
export function tellStatements(/** @type {Story} */ story, /** @type {StatementView[]} */ now) {
  const before = story.claims;
  story.claims = new Map();
  for (const each of now) {
    const was = before.get(each.place);
    const told = was?.told ?? "";
    const words = each.text ?? "";
    story.claims.set(each.place, {
      ...untold(each.place),
      heading: each.heading,
      words,
      quotation: Boolean(each.quotation),
      verdict: words ? "supported" : null,
      cites: each.cites ?? [],
      state: words ? "checked" : "waiting",
      was: told && told !== words ? told : was?.was !== words ? was?.was ?? "" : "",
      told: words || told,
    });
  }
  for (const [place, each] of before) {
    if (each.told && !story.claims.has(place)) story.claims.set(place, { ...each, words: each.told, was: "", state: "dropped", why: "" });
  }
}

/** Take one event up. Events that were taken up already change nothing. */
export function take(/** @type {Story} */ story, /** @type {EventView} */ { seq, kind, event, documents = {}, pages = {} }) {
  if (seq <= story.seen) return story;
  story.seen = seq;
  Object.assign(story.titles, documents);
  Object.assign(story.pages, pages);
  if (Object.keys(event).length) /** @type {any} */ (TAKEN)[kind]?.(story, event);
  else story.phase = UNSEEN[kind] ?? story.phase; // of what is withheld only how far it is
  return story;
}

/** @type {Words} */
const UNSEEN = {
  Planned: "Searching",
  Decided: "Searching",
  ToolRan: "Weighing what was found",
  Gathered: "Looking over the evidence",
  Drafted: "Checking each statement",
  Critiqued: "Finishing",
};

/** What a turn that is no question to the documents was understood as. */
/** @type {Words} */
const TASKS = {
  talk: "no question to the documents",
  check: "check the last answer",
  shorten: "make the last answer shorter",
  numbers: "only the figures of the last answer",
  list: "the last answer as a list",
  rewrite: "put the last answer differently",
};

/** @type {Taking<Story>} */
const TAKEN = {
  Asked(story, event) {
    story.question = event.question;
    story.phase = "Reading the question";
  },
  Rephrased(story, event) {
    const own = event.on ? TASKS[event.task ?? event.on] : event.query || event.question;
    if (event.on || own.trim() !== story.question.trim()) story.understood = own;
    story.phase = "Choosing a way";
  },
  Routed(story, event) {
    story.route = event;
    story.phase = ["direct", "rework"].includes(event.route) ? "Writing" : "Planning";
  },
  ModelReplied(story, event) {
    spend(story.usage, event.usage);
  },
  Planned(story, event) {
    const found = new Map(story.steps.map((step) => [step.id, step.value]));
    story.steps = event.plan.steps.map((step) => ({ ...step, value: found.get(step.id) ?? "" }));
    story.phase = "Searching";
  },
  Decided(story, event) {
    if (event.calls.length || event.refused?.length) {
      story.moves.push({
        id: `move-${story.seen}`,
        kind: event.recalls ? "recall" : event.hops ? "hop" : event.seeks?.length ? "seek" : "round",
        calls: event.calls.map((call) => ({ ...wordsOf(call), id: call.id, done: false, found: 0, error: "", passages: [] })),
      });
      const for_ = event.seeks?.length ? "Searching for support" : "Searching";
      story.phase = event.recalls ? "Looking at what earlier turns found" : for_;
    } else {
      story.phase = "Looking over the evidence";
    }
  },
  ToolRan(story, event) {
    const call = story.moves.flatMap((move) => move.calls).find((each) => each.id === event.call);
    if (call) {
      call.done = true;
      call.found = event.found.length;
      call.error = event.error ?? "";
      call.passages = event.found.map((found) => found.passage.id);
    }
    story.phase = "Weighing what was found";
  },
  Gathered(story, event) {
    for (const each of event.evidence) {
      story.evidence.set(each.key, evidenceOf(each, story));
      story.kept.add(each.passage.id);
    }
    story.phase = "Looking over the evidence";
  },
  Judged(story, event) {
    story.missing = event.enough ? [] : event.missing ?? [];
    story.phase = event.enough ? "Writing" : "Searching";
  },
  StepAnswered(story, event) {
    story.steps = story.steps.map((step) => (step.id === event.step ? { ...step, value: event.value } : step));
  },
  Stopped(story) {
    story.phase = "Writing";
  },
  Claimed(story) {
    story.phase = "Writing, and checking each statement";
  },
  Drafted(story, event) {
    let place = 0;
    const claims = new Map();
    for (const block of event.blocks) {
      for (const claim of block.claims) {
        const known = story.claims.get(place); // perhaps checked while the rest was written
        const own = { ...untold(place), heading: block.heading ?? "", ...claimOf(claim) };
        if (said(claim)) claims.set(place, known?.words === own.words ? known : own);
        place += 1;
      }
    }
    if (claims.size) story.claims = claims;
    story.phase = place ? "Checking each statement" : "Finishing";
  },
  Checked(story, event) {
    story.phase = "Checking each statement";
    if (!said(event.claim)) return; // before delivery: told as a statement, if it passed
    const known = story.claims.get(event.place) ?? untold(event.place);
    story.claims.set(event.place, { ...known, ...claimOf(event.claim), state: "checked" });
  },
  Revised(story, event) {
    story.phase = "Repairing statements that failed the check";
    if (event.claim && !said(event.claim)) return;
    const known = story.claims.get(event.place) ?? untold(event.place);
    if (event.claim) {
      const now = claimOf(event.claim);
      const was = now.words === known.words ? known.was : known.words;
      story.claims.set(event.place, { ...known, ...now, was, state: "revised", why: event.why ?? "" });
    } else {
      story.claims.set(event.place, { ...known, state: "dropped", why: event.why ?? known.why });
    }
  },
  Critiqued(story, event) {
    const reopens = !event.complete && !event.final;
    story.gap = reopens ? event.gap ?? "" : "";
    if (reopens) {
      story.claims = new Map();
      story.phase = "Searching for what is missing";
    } else story.phase = "Finishing";
  },
  Paused(story) {
    story.phase = "Waiting for you";
  },
  Resumed(story) {
    story.phase = "Going on";
  },
  AwaitingReview(story) {
    story.phase = "Waiting for a reviewer";
  },
  Reviewed(story) {
    story.phase = "Reviewed";
  },
  Answered(story) {
    story.phase = "Done";
  },
  Failed(story) {
    story.phase = "Stopped";
  },
};

/** Add what a model's reply took. */
export function spend(/** @type {Story["usage"]} */ sums, /** @type {Recorded["Usage"]} */ used = {}) {
  sums.calls += used.calls ?? 0;
  sums.tokens_in += used.tokens_in ?? 0;
  sums.tokens_out += used.tokens_out ?? 0;
  sums.money += used.money ?? 0;
}

/** How often it was decided to search, as the record counts it. */
export function rounds(/** @type {Story} */ story) {
  return story.moves.filter((move) => move.kind === "round" && move.calls.length).length;
}

/** How many of a call's passages were worth keeping. */
export function keptOf(/** @type {Story} */ story, /** @type {Move["calls"][number]} */ call) {
  return call.passages.filter((id) => story.kept.has(id)).length;
}

/** A step's question with what earlier steps found in its place. */
export function stepWords(/** @type {Story} */ story, /** @type {Story["steps"][number]} */ step) {
  return step.question.replace(/\{(\w+)\}/g, (whole, id) => story.steps.find((each) => each.id === id)?.value || "…");
}

function wordsOf(/** @type {Recorded["Call"]} */ call) {
  const given = call.arguments ?? {};
  const words = given.query ?? given.name ?? given.title ?? "";
  const rest = Object.entries(given).filter(([name]) => !["query", "name", "title", "k", "passage"].includes(name));
  return {
    tool: call.tool,
    words: String(words),
    rest: rest.map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : value}`),
  };
}

function untold(/** @type {number} */ place) {
  return { place, heading: "", was: "", told: "", state: "waiting", ...claimOf({ text: "", cites: [] }) };
}

function said(/** @type {Recorded["Claim"]} */ claim) {
  return Boolean(claim.text || claim.quote);
}

function claimOf(/** @type {Recorded["Claim"]} */ claim) {
  return {
    words: claim.quote ? claim.quote.text : claim.text,
    quotation: Boolean(claim.quote),
    verdict: claim.verdict ?? null,
    why: claim.why ?? "",
    cites: claim.cites ?? [],
    by: claim.by?.split("@").at(-1) ?? "",
  };
}

function evidenceOf(/** @type {Recorded["Evidence"]} */ each, /** @type {Story} */ { titles, pages, seen }) {
  const doc = each.quote.doc_id;
  return {
    key: each.key,
    document: doc,
    title: titles[doc] ?? "A document that was removed",
    date: null,
    name: "",
    page: pages[each.key] ?? null, // the passage may begin on an earlier one
    heading: each.passage.heading ?? "",
    score: each.score,
    note: each.note ?? "",
    question: each.question,
    flagged: Boolean(each.flagged),
    start: each.quote.start,
    end: each.quote.end,
    quote: each.quote.text,
    passage: each.passage.text,
    passage_start: each.passage.start,
    context: "",
    table: null,
    cited: false,
    order: seen,
  };
}
