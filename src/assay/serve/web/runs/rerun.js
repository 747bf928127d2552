// A run done again from one of its steps: with the same model, or with another one. What comes of it can be compared.

import { at, post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { actions, button, check, dialog, field, note } from "../lib/ui.js";

const AS_BEFORE = "";
const NONE = "none";

/** Asks how, begins the new run, and goes there. */
export async function rerun(/** @type {App} */ app, /** @type {RunView} */ run, /** @type {number} */ seq, /** @type {string} */ words) {
  const begun = await dialog(`Re-run from event ${seq}: ${words}`, (close) => form(app, run, seq, close));
  if (begun) app.go(`#${at("run", begun.run)}`);
}

function form(/** @type {App} */ app, /** @type {RunView} */ run, /** @type {number} */ seq, /** @type {(run?: RunStartedResponse) => void} */ close) {
  const known = [...new Set([app.me.model, ...run.models].filter(Boolean))];
  const same = el("input", { type: "radio", name: "rerun-model", value: AS_BEFORE, checked: true });
  const other = el("input", { type: "radio", name: "rerun-model", value: "other" });
  const none = el("input", { type: "radio", name: "rerun-model", value: NONE });
  const list = el("datalist", { id: "rerun-known" }, ...known.map((value) => el("option", { value })));
  const named = el("input", { type: "text", maxlength: "200", list: list.id, autocomplete: "off", spellcheck: "false" });
  const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
  const go = el("button", { type: "submit", class: "button primary" }, "Re-run");
  named.addEventListener("input", () => (other.checked = true));

  async function submit(/** @type {Event} */ event) {
    event.preventDefault();
    const model = other.checked ? named.value.trim() : none.checked ? NONE : AS_BEFORE;
    if (other.checked && !model) return named.focus();
    go.disabled = true;
    try {
      close(await post(`${at("api", "runs", run.id)}/rerun`, { from: seq, model }));
    } catch (problem) {
      wrong.textContent = problem.message;
      wrong.hidden = false;
      go.disabled = false;
    }
    return undefined;
  }

  return el(
    "form",
    { on: { submit } },
    el("p", { class: "muted" }, "What was recorded before it stays as it is; from there on it is done anew, in a new run. This one is not changed."),
    el(
      "fieldset",
      { class: "rerun-models" },
      el("legend", { class: "legend" }, "With which model"),
      check(same, run.models.length ? `As before: ${run.models.join(", ")}` : "As before: without a model"),
      run.models.length ? check(none, "Without a model: quotations, chosen by rule") : null,
      check(other, "Another one"),
      field("Its name", named),
      list,
    ),
    wrong,
    actions(button("Cancel", { on: () => close(undefined) }), go),
  );
}

/** Where a run was begun from the events of another one, and the way to compare them. Nothing for any other run. */
export function branchNote(/** @type {RunView} */ run, /** @type {EventView | undefined} */ first) {
  const branch = first?.event.branch;
  if (!branch) return null;
  const other = encodeURIComponent(branch.run);
  return note("info branch-note", "branch", "Begun from ", el("a", { href: `#/run/${other}` }, "another run"), ` at event ${branch.at}${branch.model ? `, with ${branch.model}` : ""}. `, el("a", { href: `#/diff/${other}/${encodeURIComponent(run.id)}` }, "Compare the two"));
}
