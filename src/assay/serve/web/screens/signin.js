// Signing in, where people are known by a name and a password. Nothing else of the page is there until then.

import { post } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { field, note, submit } from "../lib/ui.js";

/** Shows the form; the promise is kept once somebody is signed in. */
export function signIn(/** @type {HTMLElement} */ root, /** @type {App} */ app) {
  app.title("Sign in");
  return new Promise((/** @type {(signedIn: void) => void} */ resolve) => {
    const name = el(
      "input",
      { type: "text", name: "username", autocomplete: "username", required: true, maxlength: "100", autocapitalize: "none", spellcheck: "false" },
    );
    const password = el(
      "input",
      { type: "password", name: "password", autocomplete: "current-password", required: true, maxlength: "1000" },
    );
    const errorBox = el("div", { role: "alert" });
    const go = submit("Sign in");
    const form = el(
      "form",
      {
        class: "signin card",
        on: {
          submit: async (event) => {
            event.preventDefault();
            go.disabled = true;
            fill(errorBox);
            try {
              await post("/api/session", { name: name.value.trim(), password: password.value });
              resolve();
            } catch (problem) {
              fill(errorBox, note("bad", "warning", problem.message));
              go.disabled = false;
              password.select();
              password.focus();
            }
          },
        },
      },
      el(
        "p",
        { class: "brand" },
        el("span", { class: "brand-mark", "aria-hidden": "true" }, "A"),
        el("span", {}, "Assay"),
      ),
      el("h1", {}, "Sign in"),
      el("p", { class: "muted" }, "Answers from your documents, with evidence you can check."),
      errorBox,
      field("Name", name),
      field("Password", password),
      go,
      el("p", { class: "hint" }, "No account? Whoever runs this server can make one."),
    );
    fill(root, el("main", { class: "signin-screen", id: "main" }, form));
    name.focus();
  });
}
