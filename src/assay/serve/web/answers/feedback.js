// What a person makes of an answer, or of one statement in it: praise at once, the rest in a dialog. It goes on the record.

import { at, post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { button, check, dialog, field, iconButton, submit } from "../lib/ui.js";

const KINDS = {
  wrong: "It is wrong",
  incomplete: "Something is missing",
  unclear: "It is hard to understand",
  helpful: "It is right and helps",
};

/** Thumbs for the answer of a run. */
export function thumbs(/** @type {App} */ app, /** @type {string} */ run) {
  const pressed = (/** @type {HTMLElement} */ node) => {
    for (const each of [up, down]) each.setAttribute("aria-pressed", String(each === node));
  };
  const up = iconButton("helps", "It is right and helps", async () => {
    if (await record(app, run, { kind: "helpful", words: "", claim: null })) pressed(up);
  }, { "aria-pressed": "false" });
  const down = iconButton("wrong", "Not right?", async () => {
    if (await giveFeedback(app, run)) pressed(down);
  }, { "aria-pressed": "false" });
  return el("span", { class: "thumbs", role: "group", "aria-label": "What do you make of this answer?" }, up, down);
}

async function record(/** @type {App} */ app, /** @type {string} */ run, /** @type {FeedbackRequest} */ given) {
  let done = false;
  await app.attempt(async () => {
    await post(`${at("api", "runs", run)}/feedback`, given);
    app.toast("Recorded. Thank you.", "good");
    done = true;
  });
  return done;
}

/** A dialog about the answer of a run, or about the statement in this place. Whether something was recorded. */
export async function giveFeedback(/** @type {App} */ app, /** @type {string} */ run, /** @type {number | null} */ place = null, statement = "") {
  const given = await dialog(place === null ? "What do you make of this answer?" : "What do you make of this statement?", (close) => {
    const kinds = Object.entries(KINDS).filter(([kind]) => place !== null || kind !== "helpful"); // which has a thumb
    const radios = kinds.map(([kind, words], number) => {
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
  return Boolean(given) && record(app, run, { .../** @type {NonNullable<typeof given>} */ (given), claim: place });
}
