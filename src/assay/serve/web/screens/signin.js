// Signing in, with a name and a password or with a provider. Nothing else of the page is there until then.

import { get, post } from "../lib/api.js";
import { add, el, fill } from "../lib/dom.js";
import { button, field, note, submit } from "../lib/ui.js";

/** Goes on at the provider, to sign in or to link a sign-in there to the account. The page is left. */
export async function goToProvider(/** @type {"/api/session/provider" | "/api/identities"} */ path) {
  const { address } = await post(path);
  location.assign(address);
}

/** Shows the form; the promise is kept once somebody is signed in. `out`: somebody has just signed out. */
export function signIn(/** @type {HTMLElement} */ root, /** @type {App} */ app, { out = false } = {}) {
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
    const elsewhere = el("div", { class: "signin-provider" });
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
      elsewhere,
      el("p", { class: "hint" }, "No account? Whoever runs this server can make one."),
    );
    fill(root, el("main", { class: "signin-screen", id: "main" }, form));
    name.focus();
    get("/api/session").then(
      ({ provider, problem }) => {
        if (problem) fill(errorBox, note("bad", "warning", problem));
        if (!provider) return;
        const there = button(`Sign in with ${provider}`, { on: () => leave(there) });
        add(elsewhere, el("p", { class: "or", "aria-hidden": "true" }, "or"), there);
        if (out) {
          const end = el("a", { href: "/api/session/provider/end" }, `Sign out at ${provider} too`);
          fill(errorBox, note("", "info", "You are signed out here. ", end, "."));
        }
      },
      () => {}, // passwords are there all the same
    );

    async function leave(/** @type {HTMLButtonElement} */ there) {
      there.disabled = true;
      fill(errorBox);
      try {
        await goToProvider("/api/session/provider");
      } catch (problem) {
        fill(errorBox, note("bad", "warning", problem.message));
        there.disabled = false;
      }
    }
  });
}
