// "Not right?": what a person makes of an answer, or of one statement in it. It goes on the record.

import { at, post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { button, check, dialog, field, submit } from "../lib/ui.js";

const KINDS = {
  wrong: "It is wrong",
  incomplete: "Something is missing",
  unclear: "It is hard to understand",
  helpful: "It is right and helps",
};

/** A dialog about the answer of a run, or about the statement in this place. */
export async function giveFeedback(/** @type {App} */ app, /** @type {string} */ run, /** @type {number | null} */ place = null, statement = "") {
  const given = await dialog(place === null ? "What do you make of this answer?" : "What do you make of this statement?", (close) => {
    const radios = Object.entries(KINDS).map(([kind, words], number) => {
      const input = el("input", { type: "radio", name: "feedback", value: kind, checked: number === 0 });
      return check(input, words);
    });
    const words = el("textarea", { rows: "3", maxlength: "2000" });
    const form = el(
      "form",
      { class: "feedback-form" },
      statement ? el("blockquote", { class: "quote", dir: "auto" }, statement) : null,
      el("fieldset", { "aria-label": "What is it?" }, ...radios),
      field("In your words, if you like", words, "Recorded with your name, for whoever looks after the answers."),
      el("div", { class: "actions" }, button("Cancel", { on: () => close(undefined) }), submit("Record it")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      close({ kind: /** @type {FeedbackKind} */ (new FormData(form).get("feedback")), words: words.value.trim() });
    });
    return form;
  });
  if (!given) return;
  await app.attempt(async () => {
    await post(`${at("api", "runs", run)}/feedback`, { ...given, claim: place });
    app.toast("Recorded. Thank you.", "good");
  });
}
