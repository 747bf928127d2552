// The people of this workspace: who signs in, in which groups, who looks after the others. For admins.

import { at, del, get, patch, post } from "../lib/api.js";
import { ago, el, fill, plural } from "../lib/dom.js";
import { actions, badge, button, check, confirm, dialog, empty, field } from "../lib/ui.js";

const SHORTEST = 10; // characters of a password

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("People");
  if (!app.me.admin) {
    fill(root, el("div", { class: "state" }, el("h1", {}, "Only for admins"), el("p", {}, "Whoever looks after this server can change who signs in.")));
    return;
  }
  const list = el("div", {});
  fill(
    root,
    el(
      "div",
      { class: "page people" },
      el(
        "header",
        { class: "page-head" },
        el("div", {}, el("h1", {}, "People"), el("p", { class: "muted" }, "Who signs in here, and the groups that documents are shared with.")),
        el("div", { class: "actions" }, button("Add a person", { kind: "primary", icon: "plus", on: () => edit(null) })),
      ),
      list,
    ),
  );
  await refresh();

  async function refresh() {
    const { people } = await get("/api/people");
    fill(list, people.length ? el("ul", { class: "list", "aria-label": "People" }, ...people.map(row)) : empty("Nobody yet", "Add the first person, and give them a password or have them make an API key."));
  }

  function row(/** @type {PersonView} */ person) {
    const self = person.name === app.me.name;
    const groups = person.groups.length ? `In ${person.groups.join(", ")}` : "In no group";
    return el(
      "li",
      { class: "row person-row" },
      el(
        "div",
        { class: "grow" },
        el("p", { class: "person-name" }, el("span", { class: "row-title" }, person.name), person.admin ? badge("admin", "info") : null, self ? badge("you") : null),
        el("p", { class: "row-more" }, `${groups} · since ${ago(person.created)}`),
      ),
      el(
        "div",
        { class: "actions" },
        app.me.provider ? button("Sign-ins", { kind: "quiet small", icon: "key", "aria-label": `Sign-ins of ${person.name}`, on: () => signIns(person) }) : null,
        button("Change", { kind: "quiet small", icon: "pencil", "aria-label": `Change ${person.name}`, on: () => edit(person) }),
        self ? null : button("Remove", { kind: "quiet small", icon: "trash", "aria-label": `Remove ${person.name}`, on: () => remove(person) }),
      ),
    );
  }

  /** Which persons of the provider sign in to this account. */
  async function signIns(/** @type {PersonView} */ person) {
    const found = await get(at("api", "people", person.name, "identities"));
    await dialog(`Sign-ins of ${person.name}`, (/** @type {(done?: boolean) => void} */ close) => {
      const list = el("div", { class: "linked" });
      const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
      const subject = el("input", { type: "text", maxlength: "255", required: true, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
      const path = at("api", "people", person.name, "identities");
      const tries = async (/** @type {() => Promise<unknown>} */ work) => {
        wrong.hidden = true;
        try {
          await work();
          shown(await get(path));
        } catch (problem) {
          wrong.textContent = problem.message;
          wrong.hidden = false;
        }
      };
      const shown = (/** @type {IdentityView[]} */ all) =>
        fill(
          list,
          all.length
            ? el("ul", { class: "list", "aria-label": "Linked sign-ins" }, ...all.map((each) => el(
              "li",
              { class: "row" },
              el("div", { class: "grow" }, el("span", { class: "row-title" }, each.subject), el("p", { class: "row-more" }, each.issuer)),
              button("Unlink", { kind: "quiet small", icon: "trash", "aria-label": `Unlink ${each.subject}`, on: () => tries(() => del(at("api", "people", person.name, "identities", each.id))) }),
            )))
            : el("p", { class: "muted" }, `Nobody of ${app.me.provider} signs in as ${person.name}.`),
        );
      shown(found);
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        await tries(async () => {
          await post(path, { subject: subject.value.trim() });
          subject.value = "";
        });
      };
      return [
        list,
        el(
          "form",
          { on: { submit } },
          field("Subject", subject, `What ${app.me.provider} calls them. They are told it when they sign in there without an account; have them tell you in person.`),
          wrong,
          actions(button("Done", { on: () => close(true) }), el("button", { type: "submit", class: "button primary" }, "Link")),
        ),
      ];
    });
  }

  /** Somebody new, or somebody changed. */
  async function edit(/** @type {PersonView | null} */ person) {
    const done = await dialog(person ? `Change ${person.name}` : "Add a person", (close) => form(person, close));
    if (!done) return;
    app.toast(person ? `${done} is changed.` : `${done} is added.`, "good");
    await refresh();
  }

  async function remove(/** @type {PersonView} */ person) {
    const agreed = await confirm(
      `Remove ${person.name}?`,
      "Their sessions and keys end at once, and what others let them read is closed to them. What they own stays, and so do the records of their runs.",
      "Remove",
    );
    if (!agreed) return;
    await app.attempt(async () => {
      await del(at("api", "people", person.name));
      app.toast(`${person.name} is removed.`);
    });
    await refresh();
  }
}

function form(/** @type {PersonView | null} */ person, /** @type {(name?: string) => void} */ close) {
  const name = el("input", { type: "text", maxlength: "100", required: true, autocomplete: "off", autocapitalize: "none", spellcheck: "false", autofocus: true });
  const groups = el("input", { type: "text", maxlength: "1000", autocomplete: "off", value: person?.groups.join(", ") ?? "" });
  const admin = el("input", { type: "checkbox", checked: person?.admin ?? false });
  const password = el("input", { type: "password", minlength: String(SHORTEST), maxlength: "1000", autocomplete: "new-password" });
  const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
  const go = el("button", { type: "submit", class: "button primary" }, person ? "Save" : "Add");

  async function submit(/** @type {Event} */ event) {
    event.preventDefault();
    const given = {
      groups: [...new Set(groups.value.split(",").map((each) => each.trim()).filter(Boolean))],
      admin: admin.checked,
      ...(password.value ? { password: password.value } : {}),
    };
    go.disabled = true;
    try {
      if (person) await patch(at("api", "people", person.name), given);
      else await post("/api/people", { name: name.value.trim(), ...given });
      close(person?.name ?? name.value.trim());
    } catch (problem) {
      wrong.textContent = problem.message;
      wrong.hidden = false;
      go.disabled = false;
    }
  }

  return el(
    "form",
    { on: { submit } },
    person ? null : field("Name", name),
    field("Groups", groups, "With commas between them. A group is there as soon as somebody is in it."),
    field(
      person ? "New password" : "Password",
      password,
      `${plural(SHORTEST, "character")} or more. ${person ? "Empty: it stays as it is. A new one signs them out everywhere." : "Empty: they come in with an API key only."}`,
    ),
    check(admin, "Admin: sees reports about everybody, and changes who signs in"),
    wrong,
    actions(button("Cancel", { on: () => close(undefined) }), go),
  );
}
