// One review: why the answer was held, the draft statement by statement, its evidence and trace beside it, and the decision.

import { at, get, post } from "../lib/api.js";
import { answerBody, figureView } from "../answers/answer.js";
import { decisionBar } from "../answers/decision.js";
import { draftView } from "../answers/draft.js";
import { ago, count, dotted, el, fill, plural } from "../lib/dom.js";
import { eventRow } from "../runs/event.js";
import { bullets, button, failed, icon, loading, note, spinner } from "../lib/ui.js";
import { sidePanel } from "../answers/panel.js";
import { reviewState } from "./reviews.js";
import { callsOf, spans, stretches } from "../runs/timeline.js";

const AGAIN = 1000; // milliseconds between looks while edits are checked
const LONG = 300; // looks
const WIDE = "(min-width: 68rem)"; // there is room for the evidence beside the draft
const kept = new Map(); // edits by run and seal: who looks elsewhere meanwhile finds them again

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Review");
  const path = at("api", "reviews", params.run);
  const sheet = el("section", { class: "talk review", "aria-label": "Review" });
  const screen = el("div", { class: "with-side-panel" }, sheet);
  const panel = sidePanel(screen);
  const context = { app, openDocument: panel.openDocument };
  let review = await get(path);
  let left = false;
  let timer = 0;
  let edited = () => /** @type {Map<number, string>} */ (new Map()); // what differs from the draft
  let deciding = /** @type {ReturnType<typeof decisionBar> | null} */ (null);

  const library = { pieces: () => review.evidence };
  const openEvidence = (/** @type {Click} */ event) => panel.openEvidence(library, event?.currentTarget);
  const openTrace = (/** @type {Click} */ event) => panel.openPart("Trace", traceBeside(path), event?.currentTarget);

  function draw(/** @type {Child} */ message = null) {
    const waits = review.state === "waiting";
    const mayEdit = waits && review.may_decide;
    const draft = draftView(review, context, {
      editable: mayEdit,
      edits: kept.get(keyOf(review)) ?? new Map(),
      changed: (/** @type {Map<number, string>} */ edits) => {
        kept.set(keyOf(review), edits);
        deciding?.edited(edits.size);
      },
    });
    edited = draft.edits;
    deciding = waits ? decisionBar(review, { decide, edits: draft.edits }) : null;
    fill(
      sheet,
      head(),
      message,
      reasons(review),
      history(review),
      el(
        "div",
        { class: "review-tools actions" },
        el("h2", {}, waits ? "The draft" : "What it came to"),
        button(`Evidence (${count(review.evidence.length)})`, { kind: "small", icon: "list", on: openEvidence }),
        button("Trace", { kind: "small", icon: "trace", on: openTrace }),
      ),
      draft.node,
      ...(review.answer?.figures ?? []).map((figure) => figureView(figure, context)),
      whole(review, context),
      deciding?.node,
    );
    deciding?.edited(draft.edits().size);
  }

  function head() {
    return el(
      "header",
      { class: "review-head" },
      el("a", { class: "crumb small", href: "#/reviews" }, icon("left", 14), "Reviews"),
      el("h1", { dir: "auto", tabindex: "-1" }, review.question || "(erased)"),
      el(
        "p",
        { class: "trace-state" },
        reviewState(review.state),
        el(
          "span",
          { class: "small muted" },
          dotted(
            `Asked by ${review.who}`,
            `held ${ago(review.created)}`,
            review.decided ? `decided ${ago(review.decided)}${review.by ? ` by ${review.by}` : ""}` : "",
          ),
        ),
      ),
    );
  }

  /** Send the decision; what is said comes back as a review. */
  async function decide(/** @type {Decision} */ decision, /** @type {string} */ note) {
    const edits = decision === "edit" ? [...edited()].map(([place, text]) => ({ place, text })) : [];
    const before = review;
    try {
      review = await post(`${path}/decision`, { decision, seal: review.seal, note, edits });
    } catch (problem) {
      await refused(problem, before);
      return;
    }
    if (left) return;
    kept.delete(keyOf(before));
    app.reviewsChanged();
    if (decision === "edit") await checked();
    else draw(decisionMessage(decision));
    top();
  }

  /** What was decided here, and what comes of it. */
  function decisionMessage(/** @type {Decision} */ decision) {
    const words = decision === "approve"
      ? `Approved. ${review.who} can read exactly this.`
      : `Rejected. ${review.who} sees your note, and not the draft.`;
    app.announce(words);
    return el(
      "p",
      { class: ["note", decision === "approve" ? "good" : ""] },
      icon(decision === "approve" ? "check" : "close"),
      el("span", {}, words, " ", el("a", { href: "#/reviews" }, "Back to the queue")),
    );
  }

  /** Edits are grounded again; the draft comes back with new verdicts and a new seal. */
  async function checked() {
    fill(
      sheet,
      head(),
      el(
        "div",
        { class: "note", role: "status" },
        spinner(),
        el("span", {}, "Your edits are being checked against the evidence. The draft comes back with its verdicts."),
      ),
    );
    for (let look = 0; look < LONG && !left && review.state === "edited"; look += 1) {
      await new Promise((go) => (timer = setTimeout(go, look ? AGAIN : AGAIN / 4)));
      if (left) return;
      review = await get(path).catch(() => review);
    }
    if (left) return;
    const back = review.state === "waiting";
    const words = back ? "Your edits were checked. Look at the verdicts, then decide." : "The check has not come back yet. Look again later.";
    draw(note("info", "check", words));
    app.announce(words);
    app.reviewsChanged();
  }

  /** It was not taken. Perhaps what stood here is not the newest: then the newest is shown, and said so. */
  async function refused(/** @type {any} */ problem, /** @type {ReviewView} */ before) {
    if (problem.status === 401 || left) return;
    let now = null;
    try {
      now = await get(path);
    } catch {
      // the words of the refusal have to do
    }
    if (!now || (now.seal === before.seal && now.state === before.state)) {
      app.toast(problem.message, "bad");
      deciding?.free();
      return;
    }
    const mine = kept.get(keyOf(before)) ?? new Map();
    const same = new Map(before.claims.map((claim) => [claim.place, claim.text]));
    const still = now.claims.filter((claim) => mine.has(claim.place) && same.get(claim.place) === claim.text);
    kept.delete(keyOf(before));
    kept.set(keyOf(now), new Map(still.map((claim) => [claim.place, mine.get(claim.place)])));
    review = now;
    const words = now.state === "waiting"
      ? "The draft has changed since you opened it, so nothing was decided. This is how it stands now."
      : `Already decided: ${now.by || "somebody else"} has decided this meanwhile.`;
    draw(el("p", { class: "note warn", role: "alert" }, icon("warning"), el("span", {}, words)));
    app.reviewsChanged();
    top();
  }

  function top() {
    window.scrollTo(0, 0);
    sheet.querySelector("h1")?.focus({ preventScroll: true });
  }

  fill(root, screen);
  app.title(`Review: ${review.question}`);
  draw();
  if (review.state === "edited") checked();
  else if (matchMedia(WIDE).matches) panel.openEvidence(library, null, false);
  return () => {
    left = true;
    clearTimeout(timer);
    panel.close();
  };
}

const keyOf = (/** @type {ReviewView} */ review) => `${review.run} ${review.seal}`;

function reasons(/** @type {ReviewView} */ review) {
  if (!review.reasons.length) return null;
  return el(
    "section",
    { class: "note warn reasons", "aria-label": "Why it was held" },
    icon("shield"),
    el(
      "div",
      {},
      el("strong", {}, "It was held because"),
      bullets(review.reasons),
      review.four_eyes ? el("p", { class: "small" }, "Four eyes: whoever asked cannot approve it.") : null,
    ),
  );
}

/** @type {Table} */
const DECIDED = { approve: ["check", "approved it"], edit: ["pencil", "edited it"], reject: ["close", "rejected it"] };

function history(/** @type {ReviewView} */ review) {
  if (!review.history.length) return null;
  return el(
    "details",
    { class: "fold history", open: review.history.length < 4 },
    el("summary", {}, `What happened before (${count(review.history.length)})`),
    el(
      "ol",
      { class: "fold-body" },
      ...review.history.map((each) => {
        const [sign, words] = DECIDED[each.decision] ?? ["info", each.decision];
        const edits = each.edits ?? [];
        return el(
          "li",
          {},
          icon(sign, 15),
          el(
            "div",
            {},
            el("p", {}, `${each.by} ${words}`, edits.length ? ` (${plural(edits.length, "statement")})` : ""),
            each.note ? el("p", { class: "small muted", dir: "auto" }, `“${each.note}”`) : null,
            ...edits.map((edit) => el(
              "p",
              { class: "small muted", dir: "auto" },
              edit.text ? `Statement ${edit.place + 1}: ${edit.text}` : `Statement ${edit.place + 1} was dropped`,
            )),
          ),
        );
      }),
    ),
  );
}

/** The same as whoever asked would read it, with what disagrees and what was searched. */
function whole(/** @type {ReviewView} */ review, /** @type {Context} */ context) {
  const inside = el("div", { class: "fold-body" });
  const box = el("details", { class: "fold as-read" }, el("summary", {}, `As ${review.who} would read it`), inside);
  box.addEventListener("toggle", () => {
    if (box.open && !inside.childElementCount) inside.append(answerBody(/** @type {AnswerView} */ (review.answer), context));
  });
  return review.answer ? box : null;
}

/** The record of the run, as a list that opens. */
function traceBeside(/** @type {`/api/reviews/${string}`} */ path) {
  const node = el("div", { class: "trace beside" }, loading("Reading the record…"));
  const load = async () => {
    try {
      const trace = await get(`${path}/trace`);
      const timed = spans(trace.events);
      const calls = callsOf(trace.events);
      node.style.setProperty("--total", String(Math.max(1, timed.at(-1)?.end ?? 1)));
      fill(
        node,
        trace.faults.length ? el("p", { class: "note bad", role: "alert" }, icon("warning"), el("span", {}, "This record was changed after it was written.")) : null,
        ...stretches(timed).map((section) => el(
          "section",
          { class: "stretch" },
          el("h3", {}, section.name),
          el("ol", {}, ...section.events.map((each) => eventRow(each, calls))),
        )),
      );
    } catch (problem) {
      if (problem.status !== 401) fill(node, failed(problem, load));
      if (!("status" in problem)) console.error(problem);
    }
  };
  load();
  return node;
}
