// The decision on a draft: approve exactly what is shown, have one's edits checked, or reject with a note.

import { el, plural } from "../lib/dom.js";
import { actions, button, field, icon } from "../lib/ui.js";

/** `decide(decision, note)` is awaited; `edits()` is what was changed. `edited(many)` says that this has changed. */
export function decisionBar(/** @type {ReviewView} */ review, /** @type {{ decide(decision: Decision, note: string): Promise<void>; edits(): Map<number, string> }} */ { decide, edits }) {
  if (!review.may_decide) {
    return {
      node: el(
        "p",
        { class: "note why-not" },
        icon("lock"),
        el("span", {}, el("strong", {}, "You cannot decide this. "), review.why_not || "Somebody else has to."),
      ),
      edited: () => {},
      free: () => {},
    };
  }
  const note = el("textarea", { rows: "1", maxlength: "2000", placeholder: "Kept with the decision", dir: "auto" });
  const wrong = el("p", { class: "small bad", role: "alert", hidden: true }, "Say why: whoever asked sees this note.");
  const approve = button("Approve exactly this", { kind: "primary", icon: "check", on: () => act("approve") });
  const check = button("Check my edits", { kind: "primary", icon: "again", on: () => act("edit") });
  const reject = button("Reject", { kind: "danger", icon: "close", on: () => act("reject") });
  const status = el("p", { class: "small muted", role: "status" });
  const node = el(
    "section",
    { class: "decision", "aria-label": "Decision" },
    el("div", { class: "decision-note" }, field("Note", note), wrong),
    actions(check, approve, reject, status),
  );
  note.addEventListener("input", () => {
    wrong.hidden = true;
    note.style.setProperty("height", "auto");
    note.style.setProperty("height", `${Math.min(note.scrollHeight + 2, 160)}px`);
  });

  async function act(/** @type {Decision} */ decision) {
    const words = note.value.trim();
    if (decision === "reject" && !words) {
      wrong.hidden = false;
      note.focus();
      return;
    }
    if (decision === "edit" && !edits().size) return edited(0);
    for (const each of [approve, check, reject, note]) each.disabled = true;
    await decide(decision, words);
  }

  function edited(many = edits().size) {
    const real = edits().size;
    check.hidden = !many;
    check.disabled = !real;
    approve.hidden = Boolean(many);
    const open = many ? "Nothing is changed yet: write, or undo to approve it as it is." : "";
    status.textContent = real ? `${plural(real, "statement")} changed: checked again first, then you decide.` : open;
  }

  function free() {
    for (const each of [approve, check, reject, note]) each.disabled = false;
    edited();
  }

  return { node, edited, free };
}
