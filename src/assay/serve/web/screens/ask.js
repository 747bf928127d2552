// The Ask screen: a conversation in the middle, the question box under it, evidence and documents at the right.

import { at, get, post, query } from "../lib/api.js";
import { composer } from "../answers/composer.js";
import { el, fill, plural } from "../lib/dom.js";
import { button, icon, spinner } from "../lib/ui.js";
import { sidePanel } from "../answers/panel.js";
import { suggestions } from "../answers/suggestions.js";
import { turnView } from "../answers/turn.js";

const FIRST = 8; // turns of a thread that are drawn when it is opened
const FIRST_TRIAL = "Starting. Before its first answer a model is tried with a few sentences, which can take minutes on a slow machine.";
const AT_ONCE = 20; // earlier ones that are fetched at a time

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  const [bases, thread] = await Promise.all([
    get("/api/bases"),
    params.thread ? get(query(at("api", "threads", params.thread), { limit: FIRST })) : null,
  ]);
  const turns = /** @type {Turn[]} */ ([]);
  const list = el("div", { class: "turns" });
  const older = el("div", { class: "older" });
  const name = el("h1", { class: "visually-hidden" }, thread?.title ?? "");
  const welcome = el("div", { class: "welcome" });
  const talk = el("section", { class: "talk", "aria-label": "Conversation" });
  const screen = el("div", { class: "with-side-panel" }, talk);
  const panel = sidePanel(screen);
  let current = thread?.id ?? "";

  const context = /** @type {TurnContext} */ ({
    app,
    openDocument: panel.openDocument,
    openEvidence: (/** @type {string} */ id, /** @type {HTMLElement} */ from) => panel.openEvidence(/** @type {Turn} */ (turns.find((turn) => turn.id === id)), from),
    gathered: panel.gathered,
    /** Asked again in the place of this turn: what it and later ones said is not known to the new one. */
    again: (/** @type {RunView} */ run, /** @type {Partial<Asking>} */ part) => box.again({ question: run.asked, instead_of: run.id, ...part }),
    edit: (/** @type {string} */ id) => turns.find((turn) => turn.id === id)?.edit(),
    /** The latest answer in this thread to the same question. */
    before: ({ run }) => turns.findLast(({ run: other }) => (
      other.asked === run.asked && other.state === "delivered" && (!run.started || other.started < run.started)
    )),
    changed: (/** @type {Turn} */ turn) => {
      panel.gathered(turn);
      if (turn === turns.at(-1)) turn.suggest(box.ask);
      box.setRunning(turns.some((each) => each.run.state === "running"));
    },
  });

  const box = composer(app, bases, thread?.where ?? null, {
    stop: () => turns.filter((turn) => turn.run.state === "running").forEach((turn) => turn.stop()),
    ask: async (/** @type {Asking} */ request) => {
      const phase = el("p", { class: "phase", role: "status" }, "Starting");
      const patience = setTimeout(() => app.me.written_by && fill(phase, FIRST_TRIAL), 3000);
      const waiting = el(
        "article",
        { class: "turn" },
        el("h2", { class: "question" }, request.question),
        el(
          "div",
          { class: "working" },
          el("div", { class: "working-head" }, spinner(), phase),
        ),
      );
      list.append(waiting);
      arrange(true);
      waiting.scrollIntoView({ block: "start", behavior: "smooth" });
      try {
        const begun = await post("/api/runs", current ? { ...request, thread: current } : { ...request, talk: true });
        waiting.remove();
        began(begun, request);
        return true;
      } catch (problem) {
        waiting.remove();
        arrange();
        if (problem.status !== 401) app.toast(problem.message, "bad");
        return false;
      } finally {
        clearTimeout(patience);
      }
    },
  });

  function began(/** @type {RunStartedResponse} */ begun, /** @type {Asking} */ request) {
    const first = !current;
    current = begun.thread;
    const turn = add(/** @type {RunView} */ ({
      id: begun.run,
      asked: request.question,
      question: request.question,
      state: "running",
      seconds: 0,
      evidence: /** @type {EvidenceView[]} */ ([]),
    }));
    if (first) {
      app.title(request.question);
      name.textContent = request.question;
      app.settle(`#${at("thread", current)}`);
    }
    arrange();
    app.threadsChanged();
    turn.node.scrollIntoView({ block: "start" });
  }

  function add(/** @type {RunView} */ run) {
    const turn = turnView(run, context);
    turns.push(turn);
    list.append(turn.node);
    box.setRunning(turns.some((each) => each.run.state === "running"));
    return turn;
  }

  /** Turns before those that are shown, some at a time. What was being read stays where it is. */
  function earlier(/** @type {number} */ many) {
    if (!many) return fill(older);
    const more = async () => {
      pressed.disabled = true;
      try {
        const found = await get(query(at("api", "threads", current), { before: turns[0].id, limit: AT_ONCE }));
        const above = found.runs.map((run) => turnView(run, context));
        const was = turns[0].node;
        const place = was.getBoundingClientRect().top;
        turns.unshift(...above);
        list.prepend(...above.map((turn) => turn.node));
        earlier(found.earlier);
        const scroller = was.closest(".main") ?? document.documentElement;
        scroller.scrollTop += was.getBoundingClientRect().top - place;
        above.at(-1)?.heading.focus({ preventScroll: true });
      } catch (problem) {
        pressed.disabled = false;
        if (problem.status !== 401) app.toast(problem.message, "bad");
      }
    };
    const pressed = button(`Show earlier questions (${many})`, { kind: "quiet", on: more });
    return fill(older, pressed);
  }

  function arrange(asking = false) {
    const talking = asking || turns.length > 0;
    talk.classList.toggle("fresh", !talking);
    welcome.hidden = talking;
    name.hidden = !talking;
    box.follow(talking);
  }

  const leaveWelcome = thread ? () => {} : greeting(app, welcome, bases, box.ask);
  fill(talk, name, welcome, older, list, el("div", { class: "composer-dock" }, quietLines(app), box.node));
  thread?.runs.forEach(add);
  earlier(thread?.earlier ?? 0);
  turns.at(-1)?.suggest(box.ask);
  arrange();
  app.title(thread?.title ?? "Ask");
  if (thread?.where?.gone) app.toast(`${plural(thread.where.gone, "document")} that this thread searched ${thread.where.gone === 1 ? "is" : "are"} not there any more.`);
  fill(root, screen);
  if (thread) {
    const last = turns.at(-1)?.node;
    requestAnimationFrame(() => last && turns.length > 1 && last.scrollIntoView({ block: "start" }));
  }
  if (matchMedia("(hover: hover)").matches) box.focus(); // on a phone the keyboard would cover half the page

  return () => {
    leaveWelcome();
    turns.forEach((turn) => turn.close());
    panel.close();
  };
}

/** What stands above the box before the first question: the first steps, or questions to begin with. */
function greeting(/** @type {App} */ app, /** @type {HTMLElement} */ welcome, /** @type {BaseView[]} */ bases, /** @type {(question: string) => unknown} */ ask) {
  const documents = bases.reduce((sum, base) => sum + base.documents, 0);
  const pending = bases.reduce((sum, base) => sum + base.pending, 0);
  if (!documents && !pending) {
    let left = false;
    let close = () => {};
    import("../setup/first_visit.js").then(({ firstVisit }) => { // fetched only by who needs it
      if (left) return;
      const first = firstVisit(app, (now) => {
        first.close();
        greeting(app, welcome, now, ask);
      });
      close = first.close;
      fill(welcome, first.node);
    });
    return () => {
      left = true;
      close();
    };
  }
  const within = bases.length > 1 ? ` in ${plural(bases.length, "knowledge base")}` : "";
  const from = documents
    ? `Answers come from ${plural(documents, "document")}${within}, with the page behind every statement.${pending ? ` ${plural(pending, "more file")} still to be read.` : ""}`
    : `${plural(pending, "file")} still to be read. You can ask as soon as the first is done.`;
  fill(
    welcome,
    el("h1", {}, "What would you like to know?"),
    el("p", { class: "muted" }, from, " ", el("a", { href: "#/documents" }, documents ? "Add more" : "See how far they are")),
    documents ? suggestions("/api/suggestions", "To begin with", ask) : null,
  );
  return () => {};
}

/** What has to be known before asking, said once and quietly. An administrator can change it from here. */
function quietLines(/** @type {App} */ app) {
  const line = (/** @type {Child[]} */ ...words) => el("p", { class: "quiet-line" }, icon("info", 15), el("span", {}, ...words));
  const link = (/** @type {string} */ words) => el("a", { href: "#/model" }, words);
  if (app.me.leaves.length) return line(
    `With the model, questions and passages would be sent to ${app.me.leaves.join(", ")}. Nobody has agreed to that yet. `,
    app.me.admin ? [link("Agree, or choose another model"), "; until then, ask without a model (under Options)."] : "Until an administrator does, ask without a model (under Options).",
  );
  if (app.me.unconnected) return line("A model is named, and it is not connected: no question can be put to it. ", app.me.admin ? link("Connect it") : null);
  if (!app.me.model) return line("No model is set up: answers are quotations from your documents. ", app.me.admin ? link("Connect a model") : null);
  return line(app.me.written_by, " ", app.me.admin ? link("Change it") : null);
}
