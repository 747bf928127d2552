// Folders and addresses that the server follows: how each is, chosen by an administrator out of what the settings allow.

import { at, del, get, post } from "../lib/api.js";
import { ago, dotted, el, fill, plural } from "../lib/dom.js";
import { actions, button, confirm, dialog, field, icon } from "../lib/ui.js";
import { FIRST } from "./bases.js";

const LOOK = 5000; // milliseconds between two looks at how they are

/** What is followed, for one knowledge base or for all. `changed` is called when documents have come or gone. */
export function watches(/** @type {HTMLElement} */ holder, /** @type {App} */ app, /** @type {BaseView[]} */ bases, /** @type {string | undefined} */ base, /** @type {() => unknown} */ changed) {
  let seen = ""; // when something had changed last
  let drawn = "";
  let timer = 0;
  let closed = false;

  async function refresh() {
    clearTimeout(timer);
    try {
      const found = await get("/api/watches");
      if (closed) return;
      const mine = found.watches.filter((each) => !base || each.base === base);
      const now = JSON.stringify([mine.map((each) => [each.id, each.files, each.problem, state(each)]), found.allowed]);
      if (now !== drawn) fill(holder, section(mine, found.allowed)); // otherwise the focus would be lost
      drawn = now;
      const last = mine.map((each) => each.changed).sort().at(-1) ?? "";
      if (seen && last !== seen) changed();
      seen = last || "none";
    } catch {
      // the frame tells when the server is away; the next look may tell more
    }
    if (!closed) timer = setTimeout(refresh, LOOK);
  }

  function section(/** @type {WatchView[]} */ mine, /** @type {readonly string[]} */ allowed) {
    const fillable = bases.filter((each) => each.yours && (!base || each.name === base));
    const may = allowed.length > 0 && (base ? fillable.length > 0 : true);
    if (!mine.length && !may) return null;
    return el(
      "section",
      { class: "watches", "aria-label": "Followed folders" },
      el("h2", {}, "Followed folders"),
      mine.length
        ? el("ul", { class: "list" }, ...mine.map(line))
        : el("p", { class: "muted small" }, "What changes in a followed folder is read within seconds."),
      may ? actions(button("Follow a folder", { kind: "small", icon: "plus", on: () => choose(allowed, fillable) })) : null,
    );
  }

  function line(/** @type {WatchView} */ watch) {
    const end = async () => {
      const sure = await confirm("Follow it no longer?", `What was read of ${watch.place} stays.`, "Stop following", "primary");
      if (!sure) return;
      await app.attempt(() => del(at("api", "watches", watch.id)));
      await refresh();
    };
    return el(
      "li",
      { class: "watch" },
      el("p", { class: "watch-place", dir: "auto" }, icon("folder"), el("span", {}, watch.place)),
      el("p", { class: "small muted", role: "status" }, base ? "" : `${watch.base} · `, state(watch)),
      watch.problem ? el("p", { class: "note bad" }, watch.problem) : null,
      watch.yours || app.me.admin
        ? actions(button("Stop following", { kind: "quiet small", on: end, "aria-label": `Stop following ${watch.place}` }))
        : null,
    );
  }

  function choose(/** @type {readonly string[]} */ allowed, /** @type {BaseView[]} */ fillable) {
    const place = el("select", { autofocus: true }, ...allowed.map((each) => el("option", { value: each }, each)));
    const names = fillable.length ? fillable.map((each) => each.name) : [base ?? FIRST];
    const into = el("select", {}, ...names.map((each) => el("option", { value: each }, each)));
    return dialog("Follow a folder", (/** @type {(done?: boolean) => void} */ close) => {
      const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        try {
          await post("/api/watches", { place: place.value, base: into.value });
          close(true);
          await refresh();
        } catch (problem) {
          wrong.textContent = problem.message;
          wrong.hidden = false;
        }
      };
      return el(
        "form",
        { on: { submit } },
        field("Folder or address", place, "Those that the settings of this server allow."),
        field("Knowledge base", into, "Whoever may read it reads what is in the folder."),
        wrong,
        actions(button("Cancel", { on: () => close(false) }), el("button", { type: "submit", class: "button primary" }, "Follow it")),
      );
    });
  }

  refresh();
  return {
    refresh,
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function state(/** @type {WatchView} */ watch) {
  if (!watch.looked) return "It is being read for the first time.";
  return dotted(
    watch.files ? plural(watch.files, "file") : "",
    watch.changed ? `last change ${ago(watch.changed)}` : "",
    `looked at ${ago(watch.looked)}`,
  );
}
