// One's own API keys: made, shown once, ended; and the sign-ins with a provider that lead to one's account.

import { at, del, get, post } from "../lib/api.js";
import { ago, dotted, el, fill } from "../lib/dom.js";
import { actions, askWords, button, confirm, copyWords, dialog, empty, icon, note } from "../lib/ui.js";
import { goToProvider } from "./signin.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("API keys");
  const list = el("div", {});
  const provider = app.me.provider;
  const linked = el("div", { class: "linked" });
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
        actions(button("New key", { kind: "primary", icon: "plus", on: make })),
      ),
      list,
      provider
        ? el(
          "section",
          { class: "identities", "aria-labelledby": "identities" },
          el("h2", { id: "identities" }, `Sign in with ${provider}`),
          el("p", { class: "muted" }, "Link it once, and it leads to this account; your password goes on working."),
          linked,
        )
        : null,
    ),
  );
  await refresh();
  if (provider) await refreshLinked();

  async function refreshLinked() {
    const { problem } = await get("/api/session"); // why linking failed, if one has just come back from there
    const found = await get("/api/identities");
    const link = button(found.length ? "Link another" : `Link ${provider}`, { icon: "plus", on: () => app.attempt(() => goToProvider("/api/identities")) });
    fill(
      linked,
      problem ? el("div", { role: "alert" }, note("bad", "warning", problem)) : null,
      found.length ? el("ul", { class: "list", "aria-label": "Linked sign-ins" }, ...found.map(identity)) : null,
      actions(link),
    );
  }

  function identity(/** @type {IdentityView} */ each) {
    return el(
      "li",
      { class: "row" },
      icon("person"),
      el("div", { class: "grow" }, el("span", { class: "row-title" }, each.subject), el("p", { class: "row-more" }, dotted(each.issuer, `linked ${ago(each.created)}`))),
      button("Unlink", { kind: "quiet small", icon: "trash", "aria-label": `Unlink ${each.subject}`, on: () => unlink(each) }),
    );
  }

  async function unlink(/** @type {IdentityView} */ each) {
    const words = "It leads to your account no more, and you are signed out everywhere. Have a password first, or an administrator to give you one.";
    if (!(await confirm(`Unlink ${each.subject}?`, words, "Unlink"))) return;
    await app.attempt(() => del(at("api", "identities", each.id)));
    await refreshLinked();
  }

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

  function row(/** @type {KeyView} */ key) {
    const called = key.label || key.id;
    return el(
      "li",
      { class: "row" },
      icon("key"),
      el(
        "div",
        { class: "grow" },
        el("span", { class: "row-title" }, called),
        el("p", { class: "row-more" }, dotted(key.created ? `made ${ago(key.created)}` : "", key.used ? `used ${ago(key.used)}` : "")),
      ),
      button("End it", { kind: "quiet small", icon: "trash", "aria-label": `End the key ${called}`, on: () => end(key, called) }),
    );
  }

  async function make() {
    const label = await askWords("New API key", "What it is for", "", "Make it");
    if (!label) return;
    await app.attempt(async () => {
      const made = await post("/api/keys", { label });
      await once(made.key);
    });
    await refresh();
  }

  /** The key itself: only now, and never again. */
  function once(/** @type {string} */ key) {
    const box = el("input", { type: "text", readonly: true, value: key, class: "key-once", "aria-label": "The key", autofocus: true, on: { focus: (event) => event.currentTarget.select() } });
    return dialog("Copy this key now", (close) => [
      el("p", { class: "muted" }, "It is shown this once: only its digest is kept. Anyone who has it can do what you can do here."),
      el("div", { class: "key-row" }, box, button("Copy", { icon: "copy", on: () => copyWords(app, key) })),
      actions(button("I have it", { kind: "primary", on: () => close(true) })),
    ]);
  }

  async function end(/** @type {KeyView} */ key, /** @type {string} */ called) {
    if (!(await confirm(`End the key “${called}”?`, "Programs that use it are refused from now on.", "End it"))) return;
    await app.attempt(async () => {
      await del(at("api", "keys", key.id));
      app.toast("The key has ended.");
    });
    await refresh();
  }
}
