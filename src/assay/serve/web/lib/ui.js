// Parts that every screen is made of: icons, buttons, badges, states, dialogs.

import { at } from "./api.js";
import { add, el, svg } from "./dom.js";

/** @type {Table} */
const ICONS = {
  plus: ["M12 5v14", "M5 12h14"],
  menu: ["M4 7h16", "M4 12h16", "M4 17h16"],
  side: ["M4 5h16v14H4z", "M9.5 5v14"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  search: ["M10.5 4.5a6 6 0 1 1 0 12 6 6 0 0 1 0-12z", "M15 15l5 5"],
  up: ["M12 19V5", "M6 11l6-6 6 6"],
  stop: ["M7 7h10v10H7z"],
  down: ["M6 9l6 6 6-6"],
  right: ["M9 6l6 6-6 6"],
  left: ["M15 6l-6 6 6 6"],
  folder: ["M4 6h6l2 2h8v10H4z"],
  document: ["M7 3h7l4 4v14H7z", "M14 3v4h4", "M10 12h5", "M10 16h5"],
  ask: ["M4 5h16v11H10l-4 4v-4H4z"],
  layers: ["M12 4l8 4-8 4-8-4z", "M4 12l8 4 8-4", "M4 16l8 4 8-4"],
  clock: ["M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16z", "M12 8v4l3 2"],
  threads: ["M5 6h14", "M5 12h14", "M5 18h9"],
  copy: ["M9 9h10v11H9z", "M5 15V4h10"],
  download: ["M12 4v11", "M7 11l5 5 5-5", "M5 20h14"],
  upload: ["M12 16V5", "M7 9l5-5 5 5", "M5 20h14"],
  trash: ["M5 7h14", "M9 7V4h6v3", "M7 7l1 13h8l1-13"],
  pencil: ["M5 19l1-4L16 5l3 3L9 18z"],
  sun: [
    "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
    "M12 2v3",
    "M12 19v3",
    "M2 12h3",
    "M19 12h3",
    "M5 5l2 2",
    "M17 17l2 2",
    "M5 19l2-2",
    "M17 7l2-2",
  ],
  moon: ["M19 14.5A7.5 7.5 0 0 1 9.5 5 7.5 7.5 0 1 0 19 14.5z"],
  auto: ["M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16z", "M12 4v16", "M12 8h6", "M12 12h8", "M12 16h6"],
  out: ["M14 5h5v14h-5", "M4 12h10", "M10 8l4 4-4 4"],
  person: ["M12 5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z", "M5 20c1-4 4-5 7-5s6 1 7 5"],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  half: ["M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16z", "M12 4v16"],
  minus: ["M6 12h12"],
  bang: ["M12 6v7", "M12 17v.5"],
  warning: ["M12 4l9 16H3z", "M12 10v5", "M12 17.5v.5"],
  info: ["M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16z", "M12 11v5", "M12 8v.5"],
  again: ["M19 12a7 7 0 1 1-2-5", "M19 4v4h-4"],
  trace: ["M6 5v14", "M6 7h9", "M6 12h12", "M6 17h6"],
  target: ["M12 5a7 7 0 1 1 0 14 7 7 0 0 1 0-14z", "M12 2v5", "M12 17v5", "M2 12h5", "M17 12h5"],
  list: ["M9 6h11", "M9 12h11", "M9 18h11", "M5 6h.5", "M5 12h.5", "M5 18h.5"],
  sliders: ["M4 8h9", "M17 8h3", "M15 6v4", "M4 16h3", "M11 16h9", "M9 14v4"],
  shield: ["M12 3.5l7 2.5v5.5c0 4.5-3 7.5-7 9-4-1.5-7-4.5-7-9V6z", "M9 12l2.2 2.2L15.2 10"],
  pulse: ["M3 12h4l3-7 4 14 3-7h4"],
  chip: ["M7 7h10v10H7z", "M10.5 10.5h3v3h-3z", "M10 7V3.5", "M14 7V3.5", "M10 20.5V17", "M14 20.5V17", "M7 10H3.5", "M7 14H3.5", "M20.5 10H17", "M20.5 14H17"],
  chart: ["M4 20h16", "M7 16v-5", "M12 16V6", "M17 16v-8"],
  people: ["M9 6a3 3 0 1 1 0 6 3 3 0 0 1 0-6z", "M3 19c.8-3.4 3.2-4.5 6-4.5s5.2 1.1 6 4.5", "M15.5 6.3a3 3 0 0 1 0 5.4", "M17.5 14.8c1.9.6 3 1.9 3.5 4.2"],
  key: ["M8.5 10.5a4 4 0 1 1 0 8 4 4 0 0 1 0-8z", "M11.5 11.5L19 4", "M16 7l3 3"],
  branch: ["M7 5v14", "M7 13c0-4 10-1 10-7", "M14.5 8L17 5.5 19.5 8"],
  compare: ["M12 4v16", "M4 7h5", "M4 12h5", "M15 7h5", "M15 12h5", "M15 17h5"],
  helps: ["M7 11v9H4v-9z", "M7 11l4-8c1.7 0 2.5 1 2.2 2.6L12.6 9H18a2 2 0 0 1 2 2.3l-1.1 7A2 2 0 0 1 17 20H7"],
  wrong: ["M7 13V4H4v9z", "M7 13l4 8c1.7 0 2.5-1 2.2-2.6L12.6 15H18a2 2 0 0 0 2-2.3l-1.1-7A2 2 0 0 0 17 4H7"],
  undo: ["M9 7L5 11l4 4", "M5 11h9a5 5 0 0 1 0 10h-2"],
  lock: ["M6 11h12v9H6z", "M8.5 11V8a3.5 3.5 0 0 1 7 0v3"],
  out_of: ["M9 5H5v14h14v-4", "M13 5h6v6", "M19 5l-8 8"],
};

/** A small drawing that says nothing by itself; whatever holds it has a name. */
export function icon(/** @type {string} */ name, size = 18) {
  return svg(
    "svg",
    { class: `icon icon-${name}`, viewBox: "0 0 24 24", width: size, height: size, "aria-hidden": "true", focusable: "false" },
    ...(ICONS[name] ?? []).map((d) => svg("path", { d })),
  );
}

/** A button with words. `kind`: primary, quiet, danger or none. */
export function button(/** @type {string} */ words, /** @type {ButtonProps} */ { kind = "", icon: drawn = "", on, ...props } = {}) {
  return el(
    "button",
    { type: "button", class: ["button", kind], on: on ? { click: on } : null, ...props },
    drawn ? icon(drawn) : null,
    el("span", {}, words),
  );
}

/** A button that is only a drawing; `name` is what it is called. */
export function iconButton(/** @type {string} */ drawn, /** @type {string} */ name, /** @type {(event: Click) => unknown} */ on, props = {}) {
  return el(
    "button",
    { type: "button", class: "icon-button", "aria-label": name, title: name, on: { click: on }, ...props },
    icon(drawn),
  );
}

/** A small word in a coloured field. `kind`: good, warn, bad, info or none. */
export function badge(/** @type {Child} */ words, kind = "", props = {}) {
  return el("span", { class: ["badge", kind], ...props }, words);
}

/** A remark with a drawing before it. `kind`: good, warn, bad, info or none. */
export function note(/** @type {string} */ kind, /** @type {string} */ drawn, /** @type {Child[]} */ ...words) {
  return el("p", { class: ["note", kind] }, icon(drawn), el("span", {}, ...words));
}

export function bullets(/** @type {Child[]} */ lines) {
  return el("ul", { class: "bullets" }, ...lines.map((words) => el("li", {}, words)));
}

/** A box to tick, or a choice, with its words. */
export function check(/** @type {HTMLInputElement} */ box, /** @type {Child[]} */ ...words) {
  return el("label", { class: "check" }, box, el("span", {}, ...words));
}

/** A table in a box of its own, in which it scrolls. */
export function region(/** @type {string} */ label, /** @type {HTMLElement} */ table) {
  return el("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** A table in such a box. A cell is its words, or a cell that is made already; the first of a row names it. */
export function grid(/** @type {string} */ label, /** @type {Child[]} */ heads, /** @type {Child[][]} */ rows, /** @type {string} */ look) {
  const made = (/** @type {Child} */ each, /** @type {() => HTMLElement} */ make) => (each instanceof HTMLTableCellElement ? each : make());
  const line = (/** @type {Child[]} */ [first, ...others]) => el(
    "tr",
    {},
    made(first, () => el("th", { scope: "row", dir: "auto" }, first)),
    ...others.map((each) => made(each, () => el("td", {}, each))),
  );
  const names = heads.map((each) => made(each, () => el("th", { scope: "col" }, each)));
  return region(label, el("table", { class: look }, el("thead", {}, el("tr", {}, ...names)), el("tbody", {}, ...rows.map(line))));
}

export function figureCell(/** @type {Child} */ words) {
  return el("td", { class: "figure" }, words);
}

/** The button of a form. */
export function submit(/** @type {string} */ words) {
  return el("button", { type: "submit", class: "button primary" }, words);
}

/** The way to the record of a run. */
export function traceLink(/** @type {string} */ run, look = "small") {
  return el("a", { class: ["button quiet", look], href: `#${at("run", run)}` }, icon("trace"), el("span", {}, "Trace"));
}

export function actions(/** @type {Child[]} */ ...buttons) {
  return el("div", { class: "actions" }, ...buttons);
}

export function spinner() {
  return el("span", { class: "spinner small", "aria-hidden": "true" });
}

/** The head of a screen: its name, what it is for, and what can be done. */
export function pageHead(/** @type {string} */ title, about = "", /** @type {Child[]} */ ...actions) {
  return el(
    "header",
    { class: "page-head" },
    el("div", {}, el("h1", {}, title), about ? el("p", { class: "muted" }, about) : null),
    actions.some(Boolean) ? el("div", { class: "actions" }, ...actions) : null,
  );
}

/** A labelled control: `field("Name", input, "what it is for")`. */
let fields = 0;
export function field(/** @type {string} */ label, /** @type {Control} */ control, hint = "") {
  fields += 1;
  control.id ||= `field-${fields}`;
  const hintNode = hint ? el("p", { class: "hint", id: `${control.id}-hint` }, hint) : null;
  if (hintNode) control.setAttribute("aria-describedby", hintNode.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, hintNode);
}

// States of a screen or a part of it

export function loading(words = "Loading…") {
  return el(
    "div",
    { class: "state loading", role: "status" },
    el("span", { class: "spinner", "aria-hidden": "true" }),
    el("p", {}, words),
  );
}

/** Nothing there yet, and what to do about it. */
export function empty(/** @type {string} */ title, words = "", /** @type {Child[]} */ ...actions) {
  return el(
    "div",
    { class: "state" },
    el("h2", {}, title),
    words ? el("p", {}, words) : null,
    actions.length ? el("div", { class: "actions" }, ...actions) : null,
  );
}

/** What went wrong, in the server's own words, and a way to try again. */
export function failed(/** @type {any} */ problem, /** @type {(() => unknown) | null} */ again = null, title = "That did not work") {
  return el(
    "div",
    { class: "state error", role: "alert" },
    icon("warning", 24),
    el("h2", {}, title),
    el("p", {}, String(problem?.message ?? problem)),
    again ? el("div", { class: "actions" }, button("Try again", { icon: "again", on: again })) : null,
  );
}

// Dialogs

/**
 * A dialog over the page. `make(close)` gives its content; the promise is what `close` was called with.
 * @template T
 * @param {string} title
 * @param {(close: (value?: T) => void) => Child} make
 * @returns {Promise<T | undefined>}
 */
export function dialog(title, make, { wide = false } = {}) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    fields += 1;
    const heading = el("h2", { id: `dialog-${fields}` }, title);
    let result = /** @type {T | undefined} */ (undefined);
    const box = el("dialog", { class: ["dialog", wide && "wide"], "aria-labelledby": heading.id });
    const close = (/** @type {T | undefined} */ value) => {
      result = value;
      box.close();
    };
    add(box, heading, make(close));
    box.addEventListener("close", () => {
      box.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(result);
    });
    box.addEventListener("click", (event) => {
      if (event.target === box) close(undefined); // beside it
    });
    document.body.append(box);
    box.showModal();
  });
}

/** Sure? The promise is true only if the person says so. */
export async function confirm(/** @type {string} */ title, /** @type {string} */ words, yes = "Delete", kind = "danger") {
  const confirmed = await dialog(title, (/** @type {(yes: boolean) => void} */ close) => [
    el("p", {}, words),
    el(
      "div",
      { class: "actions" },
      button("Cancel", { on: () => close(false), autofocus: true }),
      button(yes, { kind, on: () => close(true) }),
    ),
  ]);
  return confirmed === true;
}

/** A line of words, asked for in a dialog; undefined if the person thinks better of it. `blank`: it may be empty. */
export function askWords(/** @type {string} */ title, /** @type {string} */ label, value = "", yes = "Save", { blank = false } = {}) {
  return dialog(title, (/** @type {(words?: string) => void} */ close) => {
    const input = el("input", { type: "text", value, maxlength: "200", required: !blank, autofocus: true });
    const form = el(
      "form",
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            if (blank || input.value.trim()) close(input.value.trim());
          },
        },
      },
      field(label, input),
      el(
        "div",
        { class: "actions" },
        button("Cancel", { on: () => close(undefined) }),
        el("button", { type: "submit", class: "button primary" }, yes),
      ),
    );
    requestAnimationFrame(() => input.select());
    return form;
  });
}

/** `act` is called when nobody has typed into the box for a moment. Returns how to call it off. */
export function afterTyping(/** @type {HTMLElement} */ box, /** @type {() => unknown} */ act, pause = 220) {
  let wait = 0;
  box.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(act, pause);
  });
  return () => clearTimeout(wait);
}

/** One of a few, side by side: `values` are their words and hints. */
export function segments(/** @type {string} */ label, /** @type {Table} */ values, /** @type {string} */ selected, /** @type {(value: any) => void} */ changed) {
  fields += 1;
  const name = `segments-${fields}`;
  return el(
    "div",
    { class: "segments", role: "radiogroup", "aria-label": label },
    ...Object.entries(values).map(([value, [words, hint]]) => {
      const input = el("input", { type: "radio", name, value, checked: value === selected });
      input.addEventListener("change", () => changed(value));
      return el("label", { title: hint }, input, el("span", {}, words));
    }),
  );
}

/** Calls `more` whenever the mark at the end of a list comes into view. Returns the mark. */
export function atTheEnd(/** @type {() => unknown} */ more, /** @type {Element | null} */ root = null) {
  const mark = el("div", { class: "end-mark", "aria-hidden": "true" });
  const watch = new IntersectionObserver(
    (seen) => {
      if (seen.some((each) => each.isIntersecting)) more();
    },
    { root, rootMargin: "300px" },
  );
  watch.observe(mark);
  const again = () => (watch.unobserve(mark), watch.observe(mark)); // still at the end after more has come
  return Object.assign(mark, { stop: () => watch.disconnect(), again });
}

/** Words put on the clipboard, and said so. */
export async function copyWords(/** @type {App} */ app, /** @type {string} */ words) {
  const done = await copied(words);
  app.toast(done ? "Copied." : "The browser does not allow copying here.", done ? "" : "bad");
}

/** Also where the page is not served over HTTPS. */
async function copied(/** @type {string} */ words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const held = el("textarea", { class: "visually-hidden", "aria-hidden": "true", value: words });
    document.body.append(held);
    held.select();
    const done = document.execCommand("copy");
    held.remove();
    return done;
  }
}

/** Hand a file to the person that this page has made, or the server gives out under a path of its own. */
export function download(/** @type {string} */ name, /** @type {string} */ address) {
  const link = el("a", { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}
