// Who may read a knowledge base or a document: the list of people and groups, to give and to take. For owners only.

import { at, del, get, post } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { entry, named, offered } from "./readers.js";
import { actions, badge, button, dialog, failed, field, icon, iconButton, loading, submit } from "../lib/ui.js";

/** A dialog for a knowledge base. */
export function baseAccess(/** @type {App} */ app, /** @type {BaseView} */ base) {
  return dialog(`Who may read “${base.name}”`, (close) => accessList(app, at("api", "bases", base.name), {
    words: "It is offered to them; once they accept it, they can search it, ask about it and open its documents. Taking access away takes effect at once, in old answers too.",
    close,
  }), { wide: true });
}

/** A dialog for one document. */
export function documentAccess(/** @type {App} */ app, /** @type {DocumentView} */ document_) {
  return dialog("Who may read this document", (close) => accessList(app, at("api", "documents", document_.id), {
    words: `“${document_.title || document_.name}” is read by whoever reads its knowledge base, unless it has a list of its own.`,
    close,
    single: true,
  }), { wide: true });
}

function accessList(/** @type {App} */ app, /** @type {`/api/bases/${string}` | `/api/documents/${string}`} */ path, /** @type {{ words: string; close(value?: unknown): void; single?: boolean }} */ { words, close, single = false }) {
  const body = el("div", { class: "access-body" }, loading());
  const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
  const kind = el("select", {}, el("option", { value: "user" }, "Person"), el("option", { value: "group" }, "Group"));
  const name = el("input", { type: "text", maxlength: "100", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true });
  const give = submit("Give access");
  const form = el(
    "form",
    { class: "access-give", on: { submit: given } },
    field("Who", kind),
    field("Name", name),
    give,
  );

  /** Do it, and show how things stand then. */
  async function change(/** @type {() => Promise<AccessView>} */ act, /** @type {string} */ message) {
    wrong.hidden = true;
    try {
      draw(await act());
      app.announce(message);
      return true;
    } catch (problem) {
      wrong.textContent = problem.message;
      wrong.hidden = false;
      return false;
    }
  }

  async function given(/** @type {Event} */ event) {
    event.preventDefault();
    const who = name.value.trim();
    if (!who) return;
    give.disabled = true;
    const done = await change(() => post(`${path}/access`, { name: `${kind.value}:${who}`, may: true }), single ? `${who} may read it now` : `It is offered to ${who}`);
    give.disabled = false;
    if (done) form.reset();
    name.focus();
  }

  async function load() {
    try {
      draw(await get(`${path}/access`));
    } catch (problem) {
      if (problem.status !== 401) fill(body, failed(problem, load));
      form.hidden = true;
    }
  }

  function draw(/** @type {AccessView} */ access) {
    const owner = access.owner.startsWith("group:") ? access.owner : `user:${access.owner}`;
    const others = access.readers.filter((each) => each !== owner);
    fill(
      body,
      single
        ? el(
          "p",
          { class: "note access-own" },
          icon(access.own ? "lock" : "info"),
          el("span", {}, access.held || (access.own ? "It has a list of its own. " : `It has no list of its own: the list of ${access.patterns[0] ?? "its knowledge base"} holds. The first change makes one.`)),
          access.own
            ? button("Back to the base's list", { kind: "small", on: () => change(() => del(/** @type {`/api/documents/${string}/access`} */ (`${path}/access`)), "The list of its knowledge base holds again") })
            : null,
        )
        : null,
      el(
        "ul",
        { class: "access-list", "aria-label": "Who may read it" },
        entry(owner, badge("owner", "info")),
        ...others.map((each) => {
          const { words: called } = named(each);
          const take = iconButton("close", `Take access from ${called}`, () =>
            change(() => post(`${path}/access`, { name: each, may: false }), `${called} may not read it any more`),
          );
          return entry(each, [single ? null : offered(each, access.accepted), take]);
        }),
      ),
      others.length ? null : el("p", { class: "small muted" }, "Nobody else."),
      !single && access.patterns.length ? el("p", { class: "small muted" }, `With lists of their own: ${access.patterns.join(", ")}`) : null,
    );
  }

  load();
  return [el("p", { class: "muted" }, words), body, form, wrong, actions(button("Close", { on: () => close(true) }))];
}
