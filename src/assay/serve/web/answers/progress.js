// A run while it works: the plan filling in, searches, evidence and checked statements as they happen.

import { citeButton, flaggedNote, verdictMark } from "./citations.js";
import { count, dotted, el, fill, money, oneLine, plural, seconds } from "../lib/dom.js";
import { score } from "./evidence.js";
import { button, icon, note } from "../lib/ui.js";
import { keptOf, rounds, stepWords } from "../runs/story.js";

/** @type {Words} */
const ROUTES = {
  direct: "No search needed: answered directly",
  lookup: "One search should do",
  rework: "Works on the last answer: nothing is searched",
  research: "Research: searches until there is enough, or nothing new",
};
/** @type {Words} */
const MOVES = { recall: "Earlier turns", hop: "Followed up", seek: "To support a statement", round: "" };
const LATEST = 3; // pieces of evidence that are shown while it goes on
const SEARCHES = 4; // and searches; the others on demand

/**
 * `draw(story)` shows how things stand; `stop`, where given, is the button's work. `spent(seconds)` moves the clock. Where the
 * answer is `delivered`, only what it does not show itself is shown.
 */
export function workingView(/** @type {TurnContext} */ context, /** @type {WorkingOptions} */ { stop, openEvidence, delivered = false }) {
  const phase = el("p", { class: "phase" });
  const figures = el("p", { class: "spent figures" });
  const spinner = el("span", { class: "spinner small", "aria-hidden": "true" });
  const stopper = stop ? button(
    "Stop",
    { kind: "small", icon: "stop", class: "button small stop", on: (event) => stop(event.currentTarget) },
  ) : null;
  const lost = el("div", { class: "connection" });
  const retries = el("div", { class: "connection" });
  const line = el("div", { role: "status" }, lost, retries);
  const parts = el("div", { class: "working-parts" });
  /** @type {Record<string, HTMLElement>} */
  const sections = {};
  for (const name of ["claims", "understood", "plan", "moves", "evidence"]) {
    sections[name] = el("section", { class: `working-${name}`, hidden: true });
    parts.append(sections[name]);
  }
  const head = el("div", { class: "working-head" }, spinner, phase, figures, stopper);
  const node = el("div", { class: "working" }, head, line, parts);
  let usage = /** @type {Story["usage"] | null} */ (null);
  let time = 0;
  let roundCount = 0;

  function draw(/** @type {Story} */ story) {
    usage = story.usage;
    roundCount = rounds(story);
    phase.textContent = story.phase === "Searching" && roundCount > 1 ? `Searching, round ${roundCount}` : story.phase;
    spent(time);
    understood(sections.understood, story);
    plan(sections.plan, story);
    moves(sections.moves, story);
    if (!delivered) evidence(sections.evidence, story, context, openEvidence);
    claims(sections.claims, story, context, delivered);
  }

  function spent(/** @type {number} */ now) {
    time = now;
    const tokens = usage ? usage.tokens_in + usage.tokens_out : 0;
    figures.textContent = dotted(
      seconds(Math.max(0, now)),
      roundCount ? plural(roundCount, "round") : "",
      usage?.calls ? plural(usage.calls, "call") : "",
      tokens ? plural(tokens, "token") : "",
      usage?.money ? money(usage.money) : "",
    );
  }

  /** The run is not under way any more: the same, without what moves. */
  function still() {
    head.remove();
    line.remove();
    node.classList.add("still");
  }

  function connection(/** @type {string} */ words) {
    fill(lost, words ? note("warn", "again", words) : null);
  }

  /** A model that does not answer, and is asked again. */
  function trouble(/** @type {string} */ words) {
    fill(retries, words ? note("warn", "again", words) : null);
  }

  return { node, draw, spent, still, connection, trouble };
}

/**
 * Lists keep their nodes: what is new appears, what has changed is drawn anew, nothing else moves.
 * @type {<T>(list: HTMLElement, items: T[], key: (item: T) => string | number, look: (item: T) => Look) => void}
 */
function keyed(list, items, key, look) {
  const before = new Map([...list.querySelectorAll(":scope > li")].map((child) => [child.dataset.key ?? "", child]));
  items.forEach((item, place) => {
    const name = String(key(item));
    const { sign, ...drawn } = look(item);
    const own = before.get(name) ?? el("li", { dataset: { key: name } });
    before.delete(name);
    if (own.dataset.sign !== sign) {
      own.className = drawn.class ?? "";
      fill(own, ...drawn.children());
      own.dataset.sign = sign;
    }
    if (list.children[place] !== own) list.insertBefore(own, list.children[place] ?? null);
  });
  for (const gone of before.values()) gone.remove();
}

/** @type {<T>(node: HTMLElement, title: string, items: T[], key: (item: T) => string | number, look: (item: T) => Look, after?: Child[]) => void} */
function sectionOf(node, title, items, key, look, after = []) {
  node.hidden = !items.length;
  if (node.hidden) return;
  if (!node.firstElementChild) node.append(el("h3", {}), el("ol", { class: "working-list" }), el("div", { class: "working-after" }));
  const [heading, list, foot] = /** @type {HTMLCollectionOf<HTMLElement>} */ (node.children);
  heading.textContent = title;
  keyed(list, items, key, look);
  const sign = after.map((each) => (each instanceof Node ? each.textContent : "")).join("|");
  if (foot.dataset.sign !== sign) fill(foot, ...after); // else what has the focus keeps it
  foot.dataset.sign = sign;
}

function understood(/** @type {HTMLElement} */ node, /** @type {Story} */ story) {
  const route = story.route;
  const lines = [
    story.understood ? ["Understood as", story.understood] : null,
    route ? [
      "Route",
      [ROUTES[route.route] ?? route.route, route.every ? "the whole set is asked for" : ""].filter(Boolean).join("; "),
    ] : null,
    route && (route.since || route.until) ? ["Dates", `${route.since ?? "…"} to ${route.until ?? "…"}`] : null,
    route?.readings?.length ? ["May mean", route.readings.join("; ")] : null,
    story.gap ? ["Gap in the draft", story.gap] : null,
  ].filter((each) => each !== null);
  node.hidden = !lines.length;
  fill(node, el("dl", {}, ...lines.map(([name, words]) => el("div", {}, el("dt", {}, name), el("dd", {}, words)))));
}

function plan(/** @type {HTMLElement} */ node, /** @type {Story} */ story) {
  if (story.steps.length < 2 && !story.steps.some((step) => step.value)) {
    node.hidden = true; // a plan of one step is the question again
    return;
  }
  sectionOf(
    node,
    "Plan",
    story.steps,
    (step) => step.id,
    (step) => {
      const words = stepWords(story, step);
      return {
        sign: `${words}|${step.value}`,
        class: `plan-step ${step.value ? "found" : ""}`,
        children: () => [
          el("span", { class: "bullet", "aria-hidden": "true" }, step.value ? icon("check", 14) : null),
          el(
            "div",
            {},
            el("p", {}, words),
            step.value ? el(
              "p",
              { class: "value" },
              el("span", { class: "visually-hidden" }, "Found: "),
              step.value,
            ) : null,
          ),
        ],
      };
    },
  );
}

function moves(/** @type {HTMLElement} */ node, /** @type {Story} */ story) {
  const calls = story.moves.flatMap((move) => move.calls.map((call) => ({
    ...call,
    kind: move.kind,
    kept: keptOf(story, call),
  })));
  const all = node.dataset.all === "yes" || calls.length <= SEARCHES + 1;
  const earlier = calls.length - SEARCHES;
  const after = [
    all
      ? null
      : button(`${plural(earlier, "earlier search", "earlier searches")}`, {
          kind: "quiet small",
          icon: "up",
          on: () => {
            node.dataset.all = "yes";
            moves(node, story);
          },
        }),
    story.missing.length ? el("p", { class: "small muted" }, `Still missing: ${story.missing.join("; ")}`) : null,
  ];
  sectionOf(
    node,
    `Searches (${count(calls.length)})`,
    all ? calls : calls.slice(-SEARCHES),
    (call) => call.id,
    (call) => ({
      sign: `${call.done}|${call.found}|${call.kept}|${call.error}`,
      class: `move ${call.done ? "done" : "open"}`,
      children: () => [
        icon(call.error ? "warning" : "search", 15),
        el(
          "div",
          { class: "grow" },
          el(
            "p",
            {},
            MOVES[call.kind] ? el("span", { class: "badge" }, MOVES[call.kind]) : null,
            MOVES[call.kind] ? " " : null,
            call.words || toolWords(call),
          ),
          call.rest.length && call.words ? el("p", { class: "small muted" }, call.rest.join(" · ")) : null,
          call.error ? el("p", { class: "small muted" }, call.error) : null,
        ),
        el(
          "span",
          { class: "outcome figures small" },
          call.error ? "not done" : call.done ? `${count(call.found)} found, ${count(call.kept)} kept` : "…",
        ),
      ],
    }),
    after,
  );
}

function toolWords(/** @type {Move["calls"][number] & { kind: string }} */ call) {
  if (call.kind === "recall") return "What earlier turns found";
  return [call.tool.replaceAll("_", " "), ...call.rest].join(" · ");
}

function evidence(/** @type {HTMLElement} */ node, /** @type {Story} */ story, /** @type {Context} */ context, /** @type {WorkingOptions["openEvidence"]} */ openEvidence) {
  const all = [...story.evidence.values()];
  const documents = new Set(all.map((piece) => piece.document)).size;
  const latest = all.sort((a, b) => (b.order ?? 0) - (a.order ?? 0) || b.score - a.score).slice(0, LATEST);
  sectionOf(
    node,
    `Evidence: ${plural(all.length, "piece")} from ${plural(documents, "document")}`,
    latest,
    (piece) => piece.key,
    (piece) => ({
      sign: String(piece.score),
      class: "found-piece",
      children: () => [
        score(piece.score),
        el(
          "div",
          { class: "grow" },
          el("p", { class: "quote clamp" }, `“${oneLine(piece.quote)}”`),
          el(
            "button",
            { type: "button", class: "source-link", on: { click: (event) => context.openDocument(piece, event.currentTarget) } },
            dotted(piece.title, piece.page ? `page ${piece.page}` : ""),
          ),
          piece.flagged ? flaggedNote() : null,
        ),
      ],
    }),
    [openEvidence && all.length ? button(
      all.length > LATEST ? `See all ${count(all.length)}` : "Open the evidence",
      { kind: "quiet small", icon: "list", on: (event) => openEvidence(event.currentTarget) },
    ) : null],
  );
}

/** @type {Words} */
const ENDS = { dropped: "Left out", revised: "Rewritten, being checked" };

function claims(/** @type {HTMLElement} */ node, /** @type {Story} */ story, /** @type {Context} */ context, /** @type {boolean} */ delivered) {
  const all = [...story.claims.values()].filter(
    (claim) => !delivered || claim.was || claim.state === "dropped",
  ).sort((a, b) => a.place - b.place);
  const done = all.filter((claim) => claim.state !== "waiting");
  const numbers = new Map();
  for (const key of all.flatMap((claim) => claim.cites)) {
    if (story.evidence.has(key) && !numbers.has(key)) numbers.set(key, numbers.size + 1);
  }
  const shown = all.filter((claim, place) => claim.state !== "waiting" || all[place - 1]?.state !== "waiting"); // one for several that wait
  sectionOf(
    node,
    delivered ? "Statements that failed the check" : `Statements: ${count(done.length)} of ${count(all.length)} checked`,
    shown,
    (claim) => claim.place,
    (claim) =>
      claim.state === "waiting"
        ? {
            sign: `waiting|${claim.was}`,
            class: "claim waiting",
            children: () => [
              el("span", { class: "spinner small", "aria-hidden": "true" }),
              claim.was ? el("p", { class: "was" }, el("s", {}, claim.was)) : null,
              el("p", { class: "muted" }, "Checking what comes here against its sources…"),
            ],
          }
        : {
            sign: `${claim.state}|${claim.words}|${claim.verdict}|${claim.why}`,
            class: `claim ${claim.state} ${claim.verdict ?? ""}`,
            children: () => [
              claim.was ? el("p", { class: "was" }, el("s", {}, claim.was)) : null,
              el(
                "p",
                {},
                el(
                  claim.state === "dropped" ? "s" : "span",
                  { class: "claim-words" },
                  claim.quotation ? `“${oneLine(claim.words)}”` : claim.words,
                ),
                el(
                  "span",
                  { class: "marks" },
                  ...claim.cites.filter((key) => numbers.has(key)).map((key) => citeButton(
                    { .../** @type {Piece} */ (story.evidence.get(key)), number: numbers.get(key) },
                    context.openDocument,
                  )),
                  claim.state === "checked" ? verdictMark(claim, true) : null,
                ),
              ),
              ENDS[claim.state] ? el(
                "p",
                { class: "small muted fate" },
                [ENDS[claim.state], claim.why].filter(Boolean).join(": "),
              ) : null,
            ],
          },
  );
}
