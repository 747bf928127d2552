// Who may read a knowledge base or a document: the list of people and groups, to give and to take. For owners only.

import { at, del, get, post } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { badge, button, dialog, failed, field, icon, iconButton, loading } from "../lib/ui.js";

/** A dialog for a knowledge base. */
export function baseAccess(app, base) {
  return dialog(`Who may read “${base.name}”`, (close) => accessList(app, at("api", "bases", base.name), {
    words: "They can search it, ask about it and open its documents. Taking access away takes effect at once, in old answers too.",
    close,
  }), { wide: true });
}

/** A dialog for one document. */
export function documentAccess(app, document_) {
  return dialog("Who may read this document", (close) => accessList(app, at("api", "documents", document_.id), {
    words: `“${document_.title || document_.name}” is read by whoever reads its knowledge base, unless it has a list of its own.`,
    close,
    single: true,
  }), { wide: true });
}

function accessList(app, path, { words, close, single = false }) {
  const body = el("div", { class: "access-body" }, loading());
  const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
  const kind = el("select", {}, el("option", { value: "user" }, "Person"), el("option", { value: "group" }, "Group"));
  const name = el("input", { type: "text", maxlength: "100", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true });
  const give = el("button", { type: "submit", class: "button primary" }, "Give access");
  const form = el(
    "form",
    { class: "access-give", on: { submit: given } },
    field("Who", kind),
    field("Name", name),
    give,
  );

  /** Do it, and show how things stand then. */
  async function change(act, message) {
    wrong.hidden = true;
    try {
      draw(await act());
      app.announce(message);
      return true;
    } catch (problem) {
      wrong.textContent = problem.detail ?? problem.message;
      wrong.hidden = false;
      return false;
    }
  }

  async function given(event) {
    event.preventDefault();
    const who = name.value.trim();
    if (!who) return;
    give.disabled = true;
    const done = await change(() => post(`${path}/access`, { name: `${kind.value}:${who}`, may: true }), `${who} may read it now`);
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

  function draw(access) {
    const owner = access.owner.startsWith("group:") ? access.owner : `user:${access.owner}`;
    const others = access.readers.filter((each) => each !== owner);
    fill(
      body,
      single
        ? el(
          "p",
          { class: "note access-own" },
          icon(access.own ? "lock" : "info"),
          el("span", {}, access.own ? "It has a list of its own. " : "It has no list of its own: the list of its knowledge base holds. The first change makes one."),
          access.own
            ? button("Back to the base's list", { kind: "small", on: () => change(() => del(`${path}/access`), "The list of its knowledge base holds again") })
            : null,
        )
        : null,
      el(
        "ul",
        { class: "access-list", "aria-label": "Who may read it" },
        entry(owner, badge("owner", "info")),
        ...others.map((each) => {
          const { words: called } = named(each);
          return entry(each, iconButton("close", `Take access from ${called}`, () =>
            change(() => post(`${path}/access`, { name: each, may: false }), `${called} may not read it any more`),
          ));
        }),
      ),
      others.length ? null : el("p", { class: "small muted" }, "Nobody else."),
    );
  }

  load();
  return [
    el("p", { class: "muted" }, words),
    body,
    form,
    wrong,
    el("div", { class: "actions" }, button("Close", { on: () => close(true) })),
  ];
}

/** A person or a group in a list of readers. */
export function entry(reader, after) {
  const { group, words } = named(reader);
  return el(
    "li",
    {},
    icon(group ? "people" : "person"),
    el("span", { class: "grow", dir: "auto" }, words, group ? el("span", { class: "small muted" }, " group") : null),
    after,
  );
}

/** `user:x` and `group:y` as they are called. */
export function named(reader) {
  const cut = reader.indexOf(":");
  return { group: reader.slice(0, cut) === "group", words: reader.slice(cut + 1) };
}
