// Documents switched off or on, and their tags.

import { at, patch } from "../lib/api.js";
import { plural } from "../lib/dom.js";
import { askWords } from "../lib/ui.js";

/** Switch documents off or on, by id. Resolves to whether all of them were. */
export function switchDocuments(/** @type {App} */ app, /** @type {string[]} */ ids, /** @type {boolean} */ off) {
  return each(app, ids, () => ({ off }), (done) => `${plural(done, "document")} switched ${off ? "off" : "on"}.`);
}

/** Ask for tags, and add them to these documents; of one document, ask for all of its tags. */
export async function tagDocuments(/** @type {App} */ app, /** @type {Array<Pick<DocumentSummary, "id" | "tags">>} */ documents) {
  const [first] = documents;
  const alone = documents.length === 1;
  const words = alone ? "Tags, with commas between them" : `Tags to add to ${plural(documents.length, "document")}, with commas between them`;
  const given = await askWords("Tags", words, alone ? first.tags.join(", ") : "", alone ? "Save" : "Add", { blank: alone });
  if (given === undefined) return false;
  const tags = given.split(",").map((tag) => tag.trim()).filter(Boolean);
  const before = new Map(documents.map((document) => [document.id, alone ? [] : document.tags]));
  return await each(app, [...before.keys()], (id) => ({ tags: [...(before.get(id) ?? []), ...tags] }), () => "Tags saved.");
}

async function each(/** @type {App} */ app, /** @type {string[]} */ ids, /** @type {(id: string) => UpdateDocumentRequest} */ body, /** @type {(done: number) => string} */ words) {
  let done = 0;
  await app.attempt(async () => {
    for (const id of ids) {
      await patch(at("api", "documents", id), body(id));
      done += 1;
    }
    app.toast(words(done), "good");
  });
  return done === ids.length;
}
