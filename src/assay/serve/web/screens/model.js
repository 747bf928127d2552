// The model that is asked, for an administrator: connected, tested, or done without.

import { el, fill } from "../lib/dom.js";
import { pageHead } from "../lib/ui.js";
import { modelForm } from "../setup/model_form.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Model");
  fill(
    root,
    el(
      "div",
      { class: "page" },
      pageHead("Model", "Answers are written with it and each statement is checked by it. Without one, answers are quotations."),
      el("section", { class: "card", "aria-label": "The connection" }, modelForm(app)),
    ),
  );
}
