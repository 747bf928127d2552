// Documents switched off or on, and their tags.

import { at, patch, post } from "../lib/api.js";
import { el, plural } from "../lib/dom.js";
import { actions, askWords, button, dialog, field, submit } from "../lib/ui.js";

/** Switch a document off or on. Resolves to whether it was. */
export function switchDocument(/** @type {App} */ app, /** @type {string} */ id, /** @type {boolean} */ off) {
  return change(app, id, { off }, `Switched ${off ? "off" : "on"}.`);
}

/** Ask for all tags of a document, and set them. */
export async function tagDocument(/** @type {App} */ app, /** @type {Pick<DocumentSummary, "id" | "tags">} */ document) {
  const given = await askWords("Tags", "Tags, with commas between them", document.tags.join(", "), "Save", { blank: true });
  return given !== undefined && await change(app, document.id, { tags: listed(given) }, "Tags saved.");
}

/** Ask for tags that many documents are to have, or to have no more. Resolves to undefined if the person thinks better of it. */
export async function askTags(/** @type {number} */ many, /** @type {readonly TagCount[]} */ known) {
  return await dialog(`Tags of ${plural(many, "document")}`, (/** @type {(given?: { add?: string[]; remove?: string[] }) => void} */ close) => {
    const input = el("input", { type: "text", maxlength: "200", list: "known-tags", autocomplete: "off", autofocus: true });
    const tags = (/** @type {"add" | "remove"} */ way) => {
      if (listed(input.value).length) close({ [way]: listed(input.value) });
      else input.focus();
    };
    const add = (/** @type {Event} */ event) => {
      event.preventDefault();
      tags("add");
    };
    return el(
      "form",
      { on: { submit: add } },
      el("datalist", { id: "known-tags" }, ...known.map(({ tag }) => el("option", { value: tag }))),
      field("Tags, with commas between them", input),
      actions(button("Cancel", { on: () => close(undefined) }), button("Remove them", { on: () => tags("remove") }), submit("Add them")),
    );
  });
}

/** Mark many documents at once, and how to undo it. Resolves to undefined where it did not work. */
export async function markAll(/** @type {App} */ app, /** @type {MarkDocumentsRequest} */ request) {
  let made = /** @type {MarkedResponse | undefined} */ (undefined);
  await app.attempt(async () => {
    made = await post("/api/document-marks", request);
  });
  return made;
}

/** Say how it stands now, with a way back. */
export function markedNote(/** @type {App} */ app, /** @type {MarkedResponse} */ made, /** @type {string} */ words, /** @type {() => unknown} */ undone) {
  const undo = async (/** @type {Click} */ event) => {
    event.currentTarget.disabled = true;
    for (const { ids, off, tags } of made.before) if (!(await markAll(app, { ids, off, tags }))) return;
    undone();
  };
  const others = made.left_out ? ` ${plural(made.left_out, "other")} cannot be changed: not yours, or not readable.` : "";
  return el(
    "p",
    { class: "note" },
    el("span", { class: "grow" }, `${plural(made.changed, "document")} ${words}.${others}`),
    made.changed ? button("Undo", { kind: "small", icon: "undo", on: undo }) : null,
  );
}

function listed(/** @type {string} */ given) {
  return given.split(",").map((tag) => tag.trim()).filter(Boolean);
}

async function change(/** @type {App} */ app, /** @type {string} */ id, /** @type {UpdateDocumentRequest} */ body, /** @type {string} */ words) {
  let done = false;
  await app.attempt(async () => {
    await patch(at("api", "documents", id), body);
    app.toast(words, "good");
    done = true;
  });
  return done;
}
