// Erasing documents: what goes is said before, what went and where copies remain after.

import { at, post } from "../lib/api.js";
import { el, plural } from "../lib/dom.js";
import { button, dialog, icon } from "../lib/ui.js";

const AT_ONCE = 4;

/** Asks, erases and tells. Resolves to the ids that are gone, or to undefined if the person thought better of it. */
export async function erase(/** @type {App} */ app, /** @type {Map<string, string>} */ wanted) {
  const names = [...wanted.values()];
  const agreed = await sure(names);
  if (!agreed) return undefined;
  const done = await erased([...wanted.keys()]);
  if (done.gone.length) app.toast(`${plural(done.gone.length, "document")} removed.`, "good");
  if (done.failed.length) app.toast(done.failed[0], "bad");
  if (done.backups.size) await remaining(done);
  return done.gone;
}

async function sure(/** @type {string[]} */ names) {
  const listed = names.slice(0, 3).map((name) => `“${name}”`).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
  const confirmed = await dialog(names.length === 1 ? "Remove this document?" : `Remove ${plural(names.length, "document")}?`, (close) => [
    el("p", {}, listed),
    el("p", {}, "Erased with it, for everybody:"),
    el(
      "ul",
      { class: "bullets erase-what" },
      el("li", {}, "the file, its text, and what the search knows of it"),
      el("li", {}, "its words in every answer and record of a run, and what followed from them there"),
    ),
    el("p", { class: "muted small" }, "The records stay linked, so that they can still be verified. Earlier backups still contain it; they are listed afterwards. This cannot be undone."),
    el(
      "div",
      { class: "actions" },
      button("Cancel", { on: () => close(false), autofocus: true }),
      button("Remove", { kind: "danger", on: () => close(true) }),
    ),
  ]);
  return confirmed === true;
}

async function erased(/** @type {string[]} */ ids) {
  const waiting = [...ids];
  /** @type {Erasure} */
  const done = { gone: [], failed: [], records: 0, backups: new Map() };
  const work = async () => {
    for (let id = waiting.shift(); id; id = waiting.shift()) {
      try {
        const erased = await post(`${at("api", "documents", id)}/erase`);
        done.gone.push(id);
        done.records += erased.records;
        for (const each of erased.backups) done.backups.set(each.path, each.at);
      } catch (problem) {
        done.failed.push(problem.message);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return done;
}

/** Where the words still are: copies that were made before, which only a person can delete. */
function remaining(/** @type {Erasure} */ done) {
  return dialog("Copies remain in backups", (close) => [
    el("p", {}, `Erased, with ${plural(done.records, "entry", "entries")} of records. ${plural(done.backups.size, "backup")} made before may still hold it; delete or replace them:`),
    el(
      "ul",
      { class: "backups" },
      ...[...done.backups].map(([path, when]) => el("li", {}, icon("warning", 15), el("code", {}, path), when ? el("span", { class: "small muted" }, ` ${new Date(when).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}`) : null)),
    ),
    el("div", { class: "actions" }, button("Close", { kind: "primary", on: () => close(true), autofocus: true })),
  ]);
}
