// A thread that somebody else shares: its questions, and the answers whose documents this person may read.

import { at, get } from "../lib/api.js";
import { answerBody } from "../answers/answer.js";
import { sidePanel } from "../answers/panel.js";
import { recheckView } from "../answers/recheck.js";
import { add, el, fill } from "../lib/dom.js";
import { actions, note } from "../lib/ui.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  let thread;
  try {
    thread = await get(at("api", "shared-threads", params.thread));
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    app.title("Not shared");
    const words = "Its owner has taken it back, or you have declined or left it: then it is offered at the left as long as it is shared.";
    const ask = el("a", { class: "button", href: "#/" }, "Ask a question");
    fill(root, el("div", { class: "state" }, el("h1", {}, "This thread is not shared with you"), el("p", {}, words), actions(ask)));
    return undefined;
  }
  app.title(thread.title);
  const talk = el("section", { class: "talk", "aria-label": "Conversation" });
  const screen = el("div", { class: "with-side-panel" }, talk);
  const panel = sidePanel(screen);
  const turns = thread.shared_turns.map((turn) => el(
    "article",
    { class: "turn", "aria-label": "Question and answer" },
    el("h2", { class: "question" }, turn.question),
    turn.answer
      ? add(answerBody(turn.answer, { app, openDocument: panel.openDocument }), recheckView(turn.recheck))
      : note("", "lock", turn.withheld),
  ));
  fill(
    talk,
    el("h1", { class: "visually-hidden" }, thread.title),
    note("shared-by", "people", `${thread.owner} shares this thread with you. You see what you may read of it.`),
    el("div", { class: "turns" }, ...turns),
  );
  fill(root, screen);
  return panel.close;
}
