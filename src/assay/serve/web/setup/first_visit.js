// The first visit, in three steps: documents, a model or none, and a first question. All of it in the browser.

import { FIRST, baseFor } from "../documents/bases.js";
import { dropTarget, folderPath, pickers } from "../documents/file_pickers.js";
import { adding } from "../documents/upload_panel.js";
import { send, takeUp, watch } from "../documents/uploads.js";
import { get } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { actions, button, icon } from "../lib/ui.js";
import { modelForm } from "./model_form.js";

/** `ready()` hears when the first document can be asked about. Returns `{node, close}`. */
export function firstVisit(/** @type {App} */ app, /** @type {(bases: BaseView[]) => void} */ ready) {
  const screen = el("div", { class: "first-visit" });
  const closers = /** @type {(() => void)[]} */ ([]);
  let done = false;

  const put = async (/** @type {Chosen[]} */ files) => {
    if (!files.length) return app.toast("There is no file in what you chose.", "bad");
    return app.attempt(async () => {
      const into = await baseFor();
      if (into) send(files, into, app.me.upload_megabytes);
    });
  };

  const panel = el("div", {});
  fill(
    screen,
    el("h1", {}, "Start with your documents"),
    el("p", { class: "muted" }, "Three steps, all on this page. Every statement of an answer then shows its source."),
    el(
      "ol",
      { class: "steps" },
      step(
        "1",
        "Documents",
        el("p", { class: "muted" }, "Drop files or folders anywhere on this page, or choose them: PDF, Word, PowerPoint, Excel, HTML, e-mail, EPUB, Markdown, text."),
        actions(...pickers(put)),
        folderPath(app, FIRST),
        panel,
      ),
      step("2", "A model, or none", ...model(app)),
      step("3", "Your first question", el("p", { class: "muted" }, "As soon as the first document is read, questions to begin with appear here. You can also write your own below.")),
    ),
  );
  closers.push(adding(panel, app), dropTarget(screen, "Drop to add", put));

  /** Whether a document can be asked about, looked at whenever a file has been read. */
  async function look() {
    if (done) return;
    const bases = await get("/api/bases").catch(() => []);
    if (done || !bases.some((base) => base.documents)) return;
    done = true;
    ready(bases);
  }
  let seen = 0;
  closers.push(watch((now) => {
    const over = now.count.ready + now.earlier.reduce((sum, job) => sum + job.done, 0);
    const idle = !now.busy;
    if (over !== seen || idle) look();
    seen = over;
  }));
  takeUp().catch(() => {});
  return {
    node: screen,
    close: () => {
      done = true;
      closers.forEach((close) => close());
    },
  };
}

function step(/** @type {string} */ number, /** @type {string} */ title, /** @type {Child[]} */ ...content) {
  return el(
    "li",
    { class: "card step" },
    el("h2", {}, el("span", { class: "step-number", "aria-hidden": "true" }, number), title),
    ...content,
  );
}

/** Connect one, or go without: quotations need no model. */
function model(/** @type {App} */ app) {
  if (app.me.written_by && !app.me.leaves.length) return [el("p", {}, icon("check"), ` ${app.me.written_by}`)];
  if (!app.me.admin) return [el("p", { class: "muted" }, "An administrator of this server can connect a model. Without one, answers are quotations.")];
  const holder = el("div", {});
  const open = () => fill(holder, modelForm(app, () => fill(holder, el("p", {}, app.me.written_by || "Without a model: answers are quotations."))));
  fill(
    holder,
    el("p", { class: "muted" }, "Without a model, answers are quotations from your documents and nothing leaves this computer. A model writes answers, plans searches and checks each statement."),
    el("div", { class: "actions" }, button("Connect a model", { on: open }), el("span", { class: "small muted" }, "or go without: there is nothing to do")),
  );
  return [holder];
}
