// One's own API keys: made, shown once, ended.

import { at, del, get, post } from "../lib/api.js";
import { ago, el, fill } from "../lib/dom.js";
import { askWords, button, confirm, copyWords, dialog, empty, icon } from "../lib/ui.js";

export async function show(root, params, app) {
  app.title("API keys");
  const list = el("div", {});
  fill(
    root,
    el(
      "div",
      { class: "page keys-page" },
      el(
        "header",
        { class: "page-head" },
        el(
          "div",
          {},
          el("h1", {}, "Your API keys"),
          el("p", { class: "muted" }, "A program that uses one of these keys sees what you see. Sent as ", el("code", {}, "Authorization: Bearer …"), "."),
        ),
        el("div", { class: "actions" }, button("New key", { kind: "primary", icon: "plus", on: make })),
      ),
      list,
    ),
  );
  await refresh();

  async function refresh() {
    const found = await get("/api/keys");
    const keys = Array.isArray(found) ? found : found.keys;
    fill(
      list,
      keys.length
        ? el("ul", { class: "list", "aria-label": "API keys" }, ...keys.map(row))
        : empty("No keys yet", "Make one for each program, so that one can be ended without the others."),
    );
  }

  function row(key) {
    const called = key.label || key.id;
    return el(
      "li",
      { class: "row" },
      icon("key"),
      el(
        "div",
        { class: "grow" },
        el("span", { class: "row-title" }, called),
        el("p", { class: "row-more" }, [key.created ? `made ${ago(key.created)}` : "", key.used ? `used ${ago(key.used)}` : ""].filter(Boolean).join(" · ")),
      ),
      button("End it", { kind: "quiet small", icon: "trash", "aria-label": `End the key ${called}`, on: () => end(key, called) }),
    );
  }

  async function make() {
    const label = await askWords("New API key", "What it is for", "", "Make it");
    if (!label) return;
    try {
      const made = await post("/api/keys", { label });
      await once(made.key);
    } catch (problem) {
      app.toast(problem.detail ?? problem.message, "bad");
    }
    await refresh();
  }

  /** The key itself: only now, and never again. */
  function once(key) {
    const box = el("input", { type: "text", readonly: true, value: key, class: "key-once", "aria-label": "The key", autofocus: true, on: { focus: () => box.select() } });
    const copy = async () => {
      const done = await copyWords(key);
      app.toast(done ? "Copied." : "The browser does not allow copying here.", done ? "" : "bad");
    };
    return dialog("Copy this key now", (close) => [
      el("p", { class: "muted" }, "It is shown this once: only its digest is kept. Anyone who has it can do what you can do here."),
      el("div", { class: "key-row" }, box, button("Copy", { icon: "copy", on: copy })),
      el("div", { class: "actions" }, button("I have it", { kind: "primary", on: () => close(true) })),
    ]);
  }

  async function end(key, called) {
    if (!(await confirm(`End the key “${called}”?`, "Programs that use it are refused from now on.", "End it"))) return;
    try {
      await del(at("api", "keys", key.id));
      app.toast("The key has ended.");
    } catch (problem) {
      app.toast(problem.detail, "bad");
    }
    await refresh();
  }
}
