// What can be done with an answer: see its evidence, copy it, save it, look into its trace. And what it took.

import { at, get, query } from "../lib/api.js";
import { count, el, money, plural, seconds } from "../lib/dom.js";
import { button, copyWords, download, icon } from "../lib/ui.js";
import { giveFeedback } from "./feedback.js";

const FORMS = [
  ["markdown", "Markdown", "md"],
  ["html", "Web page", "html"],
  ["json", "JSON", "json"],
  ["bibtex", "BibTeX", "bib"],
];

/** The row under an answer. */
export function tools(run, context) {
  const address = (format) => query(`${at("api", "runs", run.id)}/answer`, { format });
  const copy = async (format) => {
    try {
      const words = await get(address(format));
      const done = await copyWords(typeof words === "string" ? words : JSON.stringify(words, null, 2));
      context.app.toast(done ? "Copied." : "The browser does not allow copying here.", done ? "" : "bad");
    } catch (problem) {
      context.app.toast(problem.detail, "bad");
    }
  };
  const save = async ([format, , ending]) => {
    try {
      const words = await get(address(format));
      const made = URL.createObjectURL(new Blob(
        [typeof words === "string" ? words : JSON.stringify(words, null, 2)],
        { type: "application/octet-stream" },
      ));
      download(`answer-${run.id.slice(0, 8)}.${ending}`, made);
      setTimeout(() => URL.revokeObjectURL(made), 60000);
    } catch (problem) {
      context.app.toast(problem.detail, "bad");
    }
  };
  return el(
    "div",
    { class: "answer-tools" },
    run.evidence.length ? button(
      `Evidence (${count(run.evidence.length)})`,
      { kind: "small", icon: "list", on: (event) => context.openEvidence(run.id, event.currentTarget) },
    ) : null,
    button("Copy", { kind: "quiet small", icon: "copy", title: "The answer with its citations", on: () => copy("text") }),
    el(
      "details",
      { class: "menu" },
      el("summary", { class: "button quiet small" }, icon("download"), el("span", {}, "Save")),
      el(
        "div",
        { class: "menu-list" },
        ...FORMS.map((form) => el(
          "button",
          { type: "button", class: "menu-item", on: { click: (event) => (shut(event.currentTarget), save(form)) } },
          form[1],
        )),
      ),
    ),
    el(
      "a",
      { class: "button quiet small", href: `#/run/${encodeURIComponent(run.id)}` },
      icon("trace"),
      el("span", {}, "Trace"),
    ),
    button("Not right?", { kind: "quiet small", icon: "bang", on: () => giveFeedback(context.app, run.id) }),
    el("span", { class: "spent figures" }, spentWords(run)),
  );
}

function shut(item) {
  item.closest("details").removeAttribute("open");
}

/** What the run took, in words. */
function spentWords(run) {
  const used = run.usage;
  const tokens = used.tokens_in + used.tokens_out;
  return [
    seconds(run.seconds),
    run.rounds ? plural(run.rounds, "round") : "",
    used.calls ? plural(used.calls, "call") : "",
    tokens ? plural(tokens, "token") : "",
    used.money ? money(used.money) : "",
    run.mode,
    run.models.length ? run.models.join(", ") : "without a model",
  ]
    .filter(Boolean)
    .join(" · ");
}
