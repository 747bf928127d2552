// A run that waits for a person: a plain question, and what can be said to it as buttons.

import { add, el } from "../lib/dom.js";
import { button, field, submit } from "../lib/ui.js";

/** @type {Table} */
const SAID = {
  "go on": ["Go on searching", ""],
  "answer now": ["Answer now", "from what there is"],
  "other words": ["Search with other words", ""],
  "more sources": ["Look for more sources", ""],
  each: ["Answer each of them", ""],
};
const WANTS_WORDS = "other words";

/** `choose(choice, words)` sends the choice and is awaited; `extra` is shown between question and buttons. */
export function checkpointView(/** @type {Paused} */ waiting, /** @type {(choice: string, words: string) => Promise<boolean>} */ choose, /** @type {Child} */ extra = null) {
  const box = el("section", { class: "checkpoint card", role: "group", "aria-label": "The run waits for you" });
  const busy = (/** @type {boolean} */ on) => box.querySelectorAll("button, textarea, input").forEach((each) => each.toggleAttribute("disabled", on));
  const answer = async (/** @type {string} */ choice, words = "") => {
    busy(true);
    if (!(await choose(choice, words))) busy(false);
  };
  const first = waiting.at === "reading" ? null : waiting.options[0]; // of readings none is put forward
  const input = el("input", { type: "text", maxlength: "2000", autocomplete: "off" });
  const words = waiting.options.includes(WANTS_WORDS)
    ? el(
        "form",
        {
          class: "other-words",
          on: {
            submit: (event) => {
              event.preventDefault();
              if (input.value.trim()) answer(WANTS_WORDS, input.value.trim());
              else input.focus();
            },
          },
        },
        field("Search with other words", input),
        submit("Search"),
      )
    : null;
  add(
    box,
    el("p", { class: "checkpoint-question" }, waiting.question),
    extra,
    words,
    el(
      "div",
      { class: ["actions", waiting.at === "reading" && "readings"] },
      ...waiting.options
        .filter((option) => option !== WANTS_WORDS)
        .map((option) => button(
          SAID[option]?.[0] ?? option,
          { kind: option === first && !words ? "primary" : "", on: () => answer(option) },
        )),
    ),
  );
  return box;
}
