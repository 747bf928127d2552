// The model that is asked, for an administrator: connected, tested, or done without.

import { el, fill } from "../lib/dom.js";
import { note, pageHead } from "../lib/ui.js";
import { modelForm } from "../setup/model_form.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Model");
  const inUse = el("div", { role: "status" });
  const tell = () => fill(inUse, app.me.written_by ? note("good", "check", `${app.me.written_by} `, el("a", { href: "#/" }, "Ask a question")) : null);
  tell();
  fill(
    root,
    el(
      "div",
      { class: "page" },
      pageHead("Model", "Answers are written with it and each statement is checked by it. Without one, answers are quotations."),
      inUse,
      el("section", { class: "card", "aria-label": "The connection" }, modelForm(app, tell)),
    ),
  );
}
