// People and groups in a list of readers.

import { el } from "../lib/dom.js";
import { badge, icon } from "../lib/ui.js";

/** A person or a group in a list of readers. */
export function entry(/** @type {string} */ reader, /** @type {Child} */ after) {
  const { group, words } = named(reader);
  return el(
    "li",
    {},
    icon(group ? "people" : "person"),
    el("span", { class: "grow", dir: "auto" }, words, group ? el("span", { class: "small muted" }, " group") : null),
    after,
  );
}

/** Says that a person has not accepted yet. Members of a group each answer for themselves. */
export function offered(/** @type {string} */ reader, /** @type {string[]} */ accepted) {
  return named(reader).group || accepted.includes(reader) ? null : badge("not accepted yet");
}

/** `user:x` and `group:y` as they are called. */
export function named(/** @type {string} */ reader) {
  const cut = reader.indexOf(":");
  return { group: reader.slice(0, cut) === "group", words: reader.slice(cut + 1) };
}
