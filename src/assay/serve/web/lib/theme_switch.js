// Light or dark: the switch, and what is remembered of it. `theme.js` sets what was chosen before anything is drawn.

import { fill } from "./dom.js";
import { icon, iconButton } from "./ui.js";

/** @type {Table} */
const THEMES = {
  "": ["auto", "Colours: as the system"],
  light: ["sun", "Colours: light"],
  dark: ["moon", "Colours: dark"],
};

/** A button that goes through the three: as the system has it, light, dark. */
export function themeSwitch(/** @type {App["announce"]} */ announce) {
  const now = () => document.documentElement.dataset.theme ?? "";
  const draw = (/** @type {HTMLElement} */ node) => {
    const [drawn, name] = THEMES[now()];
    node.setAttribute("aria-label", `${name}. Change`);
    node.title = name;
    fill(node, icon(drawn));
  };
  const node = iconButton("auto", "Colours", () => {
    const next = { "": "light", light: "dark" }[now()] ?? "";
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    remember("assay-theme", next);
    draw(node);
    announce(THEMES[next][1]);
  });
  draw(node);
  return node;
}

/** Kept in this browser, where it allows that. */
export function remember(/** @type {string} */ name, /** @type {string} */ value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // it holds until the page is left, then
  }
}
