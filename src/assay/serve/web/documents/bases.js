// Knowledge bases: at a glance, and made, described and deleted.

import { at, del, get, patch, post } from "../lib/api.js";
import { el, plural } from "../lib/dom.js";
import { actions, button, dialog, field } from "../lib/ui.js";

export const FIRST = "default"; // what files go into where there is no knowledge base yet

export const placeOf = (/** @type {string} */ base) => `#${at("documents", base)}`;

/** A knowledge base as a card that leads to it. */
export function baseCard(/** @type {BaseView} */ base) {
  const counts = [plural(base.documents, "document")];
  if (base.pending) counts.push(`${base.pending} waiting`);
  if (base.unreadable) counts.push(`${base.unreadable} unreadable`);
  if (base.off) counts.push(`${base.off} off`);
  return el(
    "li",
    { class: "card base-card" },
    el("h2", {}, el("a", { href: placeOf(base.name), dir: "auto" }, base.name)),
    el("p", { class: ["base-words", !base.description && "none"], dir: "auto" }, base.description || "No description yet."),
    el("p", { class: "small muted figures" }, counts.join(" · "), base.yours ? "" : ` · from ${base.owner}`),
  );
}

/** What others share with this person and they have not answered: nothing of it is searched before it is accepted. */
export function offerList(/** @type {OfferView[]} */ offers, /** @type {App} */ app, /** @type {() => void} */ answered) {
  const answer = (/** @type {OfferView} */ offer, /** @type {boolean} */ accept) => async () => {
    await app.attempt(async () => {
      await post(at("api", "offers", offer.id), { accept });
      answered();
    });
  };
  return el(
    "ul",
    { class: "list offers", "aria-label": "Offered knowledge bases", hidden: !offers.length },
    ...[...offers].sort((one, other) => Number(one.declined) - Number(other.declined)).map((offer) =>
      el(
        "li",
        { class: "card" },
        el("p", { dir: "auto" }, `${offer.owner} shares “${offer.name}” with you.`, offer.declined ? " You declined or left it." : ""),
        el("p", { class: "small muted", dir: "auto" }, offer.description || "It is searched once you accept it."),
        el(
          "div",
          { class: "actions" },
          button("Accept", { on: answer(offer, true), kind: "small" }),
          offer.declined ? null : button("Decline", { on: answer(offer, false), kind: "small" }),
        ),
      ),
    ),
  );
}

/** Leave a base of somebody else's. Resolves to its name, or undefined. */
export function leaveBase(/** @type {BaseView} */ base) {
  return form(`Leave “${base.name}”?`, "Leave it", [
    el("p", {}, "It is not searched any more, and what was found in it is hidden. You can accept it again as long as its owner shares it with you."),
  ], async () => {
    await post(at("api", "offers", base.id), { accept: false });
    return base.name;
  });
}

/** Make one. Resolves to its name, or undefined. */
export function newBase(/** @type {App} */ app) {
  const name = el("input", { type: "text", maxlength: "100", required: true, autocomplete: "off", autofocus: true });
  const about = aboutArea("");
  const group = el("select", {}, el("option", { value: "" }, "Only me"), ...app.me.groups.map((each) => el("option", { value: each }, each)));
  return form("New knowledge base", "Make it", [
    el("p", { class: "muted" }, "It keeps documents together that are asked about together."),
    field("Name", name),
    field("What is in it", about, ABOUT),
    app.me.groups.length ? field("Who may fill it", group) : null,
  ], async () => (await post("/api/bases", { name: name.value.trim(), description: about.value.trim(), group: group.value })).name);
}

export function describeBase(/** @type {BaseView} */ base) {
  const about = aboutArea(base.description);
  return form(`Describe “${base.name}”`, "Save", [field("What is in it", about, ABOUT)], async () =>
    (await patch(at("api", "bases", base.name), { description: about.value.trim() })).name,
  );
}

/** Delete one with all that is in it, once its name has been typed. Resolves to its name, or undefined. */
export function deleteBase(/** @type {BaseView} */ base) {
  const all = base.documents + base.unreadable + base.pending + base.off;
  const typed = el("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true });
  const done = async () => {
    await del(at("api", "bases", base.name));
    return base.name;
  };
  return form(`Delete “${base.name}”?`, "Delete it", [
    el(
      "p",
      {},
      `${all === 1 ? "Its document is" : `Its ${plural(all, "document")} are`} erased, with everything that was read from ${all === 1 ? "it" : "them"}. This cannot be undone.`,
    ),
    el("p", { class: "muted" }, "Answers that were given from them stay, without the words that they quoted."),
    field(`Type ${base.name} to go on`, typed),
  ], done, { kind: "danger", ready: () => typed.value.trim() === base.name });
}

/** The base that files go into: this one, the only one, or the one that is chosen. Made where there is none. */
export async function baseFor(current = "") {
  if (current) return current;
  const filled = (await get("/api/bases")).filter((base) => base.yours);
  if (filled.length === 1) return filled[0].name;
  if (!filled.length) return (await post("/api/bases", { name: FIRST })).name;
  return dialog("Into which knowledge base?", (close) => [
    el(
      "ul",
      { class: "base-choices" },
      ...filled.map((base) =>
        el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "button", on: { click: () => close(base.name) } },
            el("span", { dir: "auto" }, base.name),
            el("span", { class: "small muted" }, plural(base.documents, "document")),
          ),
        ),
      ),
    ),
    actions(button("Cancel", { on: () => close(undefined) })),
  ]);
}

const ABOUT = "In a sentence or two. It helps to decide where to look.";

function aboutArea(/** @type {string} */ words) {
  return el("textarea", { rows: "4", maxlength: "2000", value: words });
}

/** A form in a dialog. What the server has against it is said in the form; `ready` holds the button back until it is true. */
function form(/** @type {string} */ title, /** @type {string} */ doing, /** @type {Child[]} */ parts, /** @type {() => Promise<string>} */ done, /** @type {{ kind?: string; ready?(): boolean }} */ { kind = "primary", ready = () => true } = {}) {
  return dialog(title, (close) => {
    const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
    const go = el("button", { type: "submit", class: ["button", kind], disabled: !ready() }, doing);
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      try {
        close(await done());
      } catch (problem) {
        wrong.textContent = problem.message;
        wrong.hidden = false;
        go.disabled = !ready();
      }
    };
    const input = () => {
      go.disabled = !ready();
    };
    return el("form", { on: { submit, input } }, ...parts, wrong, actions(button("Cancel", { on: () => close(undefined) }), go));
  });
}
