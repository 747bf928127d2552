// Documents switched off or on, and their tags.

import { at, patch } from "../lib/api.js";
import { plural } from "../lib/dom.js";
import { askWords } from "../lib/ui.js";

/** Switch documents off or on, by id. Resolves to whether all of them were. */
export function switchDocuments(app, ids, off) {
  return each(app, ids, () => ({ off }), (done) => `${plural(done, "document")} switched ${off ? "off" : "on"}.`);
}

/** Ask for tags, and add them to these documents; of one document, ask for all of its tags. */
export async function tagDocuments(app, documents) {
  const [first] = documents;
  const alone = documents.length === 1;
  const words = alone ? "Tags, with commas between them" : `Tags to add to ${plural(documents.length, "document")}, with commas between them`;
  const given = await askWords("Tags", words, alone ? first.tags.join(", ") : "", alone ? "Save" : "Add", { blank: alone });
  if (given === undefined) return false;
  const tags = given.split(",").map((tag) => tag.trim()).filter(Boolean);
  const before = new Map(documents.map((document) => [document.id, alone ? [] : document.tags]));
  return await each(app, [...before.keys()], (id) => ({ tags: [...before.get(id), ...tags] }), () => "Tags saved.");
}

async function each(app, ids, body, words) {
  let done = 0;
  try {
    for (const id of ids) {
      await patch(at("api", "documents", id), body(id));
      done += 1;
    }
    app.toast(words(done), "good");
  } catch (problem) {
    app.toast(problem.detail ?? problem.message, "bad");
  }
  return done === ids.length;
}
