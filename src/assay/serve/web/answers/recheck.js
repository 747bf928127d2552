// How an answer stands against the documents of now: what they said then and say now, and the way to ask again and compare.

import { at, follow, post } from "../lib/api.js";
import { el, fill, plural } from "../lib/dom.js";
import { button, icon } from "../lib/ui.js";

const SHOWN = 5; // findings at first
/** @type {Table} */
const LOOKS = { "source changed": ["warn", "warning"], contradicted: ["warn", "warning"], "no longer holds": ["bad", "warning"] };

/** A line that it holds; or else what has changed, with a button that asks again where `app` is given. */
export function recheckView(/** @type {RecheckView | null | undefined} */ found, /** @type {App | null} */ app = null) {
  if (!found) return null;
  if (found.standing === "holds") return el("p", { class: "recheck small muted" }, icon("check", 14), el("span", {}, found.line));
  const [kind, sign] = LOOKS[found.standing];
  const more = found.findings.length - SHOWN;
  return el(
    "section",
    { class: ["note", "recheck", kind], "aria-label": "Checked again" },
    icon(sign),
    el(
      "div",
      { class: "grow" },
      el("strong", { dir: "auto" }, heading(found)),
      ...found.findings.slice(0, SHOWN).map(finding),
      more > 0 ? el("p", { class: "small" }, `And ${plural(more, "more")}.`) : null,
      app ? askAgain(found.run, app) : null,
    ),
  );
}

function heading(/** @type {RecheckView} */ found) {
  if (found.withheld || found.standing === "source changed") return found.line;
  return found.standing === "contradicted" ? "A newer document says otherwise" : "No longer holds";
}

function finding(/** @type {RecheckView["findings"][number]} */ each) {
  return el(
    "dl",
    { class: "then-now small" },
    el("dt", {}, "Then"),
    el("dd", {}, el("q", { dir: "auto" }, each.then)),
    el("dt", {}, "Now"),
    el("dd", {}, each.now ? el("q", { dir: "auto" }, each.now) : each.why || "not there", el("span", { class: "muted" }, ` ${each.title}`)),
  );
}

/** Asks again, waits for the answer, and shows what differs. */
function askAgain(/** @type {string} */ run, /** @type {App} */ app) {
  const said = el("span", { class: "small muted", role: "status" });
  const ask = async (/** @type {Click} */ event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    fill(said, "Asking again…");
    try {
      const begun = await post(`${at("api", "runs", run)}/ask-again`);
      const compare = `#/diff/${encodeURIComponent(run)}/${encodeURIComponent(begun.run)}`;
      const own = `#${at("run", begun.run)}`;
      follow(begun.events, { end: (ended) => pressed.isConnected && app.go(ended.state === "delivered" ? compare : own) });
    } catch (problem) {
      fill(said, problem.message);
      pressed.disabled = false;
    }
  };
  return el("p", { class: "actions" }, button("Ask again and compare", { kind: "small", icon: "again", on: ask }), said);
}
