// Questions that somebody could ask: to begin with, or after an answer. The words come from documents; a press asks them.

import { get } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { icon } from "../lib/ui.js";

/** A list that fills itself from `path`; nothing is shown where there is nothing to suggest. `ask(question)` asks one. */
export function suggestions(/** @type {`/api/runs/${string}/follow-ups` | "/api/suggestions"} */ path, /** @type {string} */ name, /** @type {(question: string) => unknown} */ ask) {
  const holder = el("div", { class: "suggestions" });
  get(path)
    .then(({ questions }) => {
      if (!questions.length) return;
      fill(
        holder,
        el("p", { class: "legend" }, name),
        el(
          "ul",
          { "aria-label": name },
          ...questions.map((each) => el(
            "li",
            {},
            el(
              "button",
              { type: "button", class: "suggestion", title: `From ${each.title}`, dir: "auto", on: { click: () => ask(each.question) } },
              el("span", {}, each.question),
              icon("right", 16),
            ),
          )),
        ),
      );
    })
    .catch(() => {}); // a courtesy: without it one asks one's own
  return holder;
}
