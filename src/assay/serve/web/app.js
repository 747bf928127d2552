// The frame of the page: who is here, which screen is shown, navigation, threads at the left, words for everybody.

import { del, get, session } from "./lib/api.js";
import { remember, themeSwitch } from "./lib/theme_switch.js";
import { el, fill } from "./lib/dom.js";
import { confirm, failed, icon, iconButton, loading } from "./lib/ui.js";
import { PLACES, placeOf, places, SCREENS, tabsAbove, waitingCount, watchWaiting } from "./lib/navigation.js";
import { threadList } from "./answers/threads.js";

const shell = byId("app");
let main = /** @type {HTMLElement | null} */ (null);
const skip = el("a", { class: "skip", href: "#main", on: { click: (event) => (event.preventDefault(), (questionBox() ?? main)?.focus()) } }, "Skip to the content");
let side = /** @type {HTMLElement | null} */ (null);
let threads = /** @type {ReturnType<typeof threadList> | null} */ (null);
let waiting = /** @type {ReturnType<typeof watchWaiting> | null} */ (null); // how much waits for this person
let leave = /** @type {Cleanup | null} */ (null); // clean-up of the screen that is shown
let turn = 0; // which showing of a screen is the current one
let shown = ""; // the hash that is shown

/** What a screen gets. @type {App} */
const app = {
  me: /** @type {any} */ (null), // known before the first screen is shown
  go(hash) {
    if (location.hash === hash) show();
    else location.hash = hash;
  },
  /** The address says where we are, and nothing is shown anew. */
  settle(hash) {
    shown = hash;
    history.replaceState(null, "", hash);
    mark();
  },
  announce(words) {
    byId("live").textContent = words;
  },
  toast(words, kind = "") {
    const line = el("div", { class: ["toast", kind] }, el("p", {}, words));
    line.append(iconButton("close", "Dismiss", () => line.remove()));
    const box = byId("toasts");
    box.append(line);
    while (box.childElementCount > 4) box.firstElementChild?.remove();
    setTimeout(() => line.remove(), kind === "bad" ? 12000 : 6000);
  },
  /** Do it, and say what is wrong if it cannot be done. Resolves to whether it was. */
  async attempt(work) {
    try {
      await work();
      return true;
    } catch (problem) {
      app.toast(problem.message, "bad");
      return false;
    }
  },
  title(words) {
    document.title = words ? `${words} – Assay` : "Assay";
  },
  /** The threads at the left have changed. */
  threadsChanged() {
    threads?.refresh();
  },
  /** A review was decided, or something waits for one. */
  reviewsChanged() {
    waiting?.look();
  },
};

function byId(/** @type {string} */ id) {
  return /** @type {HTMLElement} */ (document.getElementById(id)); // index.html has it
}

// Which screen

function where() {
  const [path, words = ""] = location.hash.replace(/^#/, "").split("?");
  for (const screen of SCREENS) {
    const fits = screen.at.exec(path);
    if (!fits) continue;
    const params = Object.fromEntries(new URLSearchParams(words));
    (screen.params ?? []).forEach((name, place) => {
      if (fits[place + 1] !== undefined) params[name] = plain(fits[place + 1]);
    });
    return { ...screen, values: params };
  }
  return null;
}

function plain(/** @type {string} */ part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  if (!main) return;
  const own = ++turn;
  const first = shown === "";
  const from = document.activeElement;
  shown = location.hash || "#/";
  closeSide();
  await left();
  const screen = where();
  if (!first) {
    waiting?.pass();
    threads?.lookShared();
  }
  const root = el("div", { class: "screen" });
  fill(main, tabsAbove(screen, app.me), root);
  mark();
  main.scrollTop = 0;
  window.scrollTo(0, 0);
  if (!screen) {
    app.title("Not found");
    fill(
      root,
      el(
        "div",
        { class: "state" },
        el("h1", {}, "There is nothing here"),
        el("p", {}, el("a", { href: "#/" }, "Ask a question")),
      ),
    );
    return;
  }
  const slow = setTimeout(() => root.childElementCount || fill(root, loading()), 200);
  try {
    const { show: open } = await import(screen.module);
    if (own !== turn) return;
    const clean = await open(root, screen.values, app);
    if (own === turn) leave = clean ?? null;
    else await clean?.();
  } catch (problem) {
    // What the server did not say may be the page's own fault, and goes away with it: an upgrade has other scripts.
    if (own === turn && problem?.status !== 401) fill(root, failed(problem, "status" in Object(problem) ? show : () => location.reload()));
    if (!("status" in Object(problem))) console.error(problem);
  } finally {
    clearTimeout(slow);
  }
  fill(skip, questionBox() ? "Skip to the question" : "Skip to the content");
  const moved = ![document.body, from].includes(document.activeElement); // the person, or the screen
  if (own === turn && !first && !moved) main.focus({ preventScroll: true });
}

async function left() {
  const clean = leave;
  leave = null;
  try {
    await clean?.();
  } catch (problem) {
    console.error(problem);
  }
}

function questionBox() {
  return /** @type {HTMLElement | null} */ (document.querySelector("#question"));
}

/** Navigation says where we are. */
function mark() {
  const screen = where();
  for (const link of document.querySelectorAll("[data-place]")) {
    if (screen && [screen.name, placeOf(screen.name)].includes(link.dataset.place ?? "")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  threads?.mark(screen?.values.thread ?? "");
}

// The frame

function frame() {
  threads = threadList(app);
  side = el(
    "aside",
    { class: "side", id: "side", "aria-label": "Navigation and threads" },
    el(
      "div",
      { class: "side-head" },
      el(
        "a",
        { class: "brand", href: "#/", "aria-label": "Assay: a new question" },
        el("span", { class: "brand-mark", "aria-hidden": "true" }, "A"),
        el("span", {}, "Assay"),
      ),
      iconButton("side", "Hide the sidebar", () => setSide(false), { class: "icon-button wide-only" }),
      iconButton("close", "Close the menu", closeSide, { class: "icon-button narrow-only" }),
    ),
    places(app.me),
    threads.node,
    foot(),
  );
  main = el("main", { id: "main", class: "main", tabindex: "-1" });
  fill(
    shell,
    skip,
    side,
    el(
      "button",
      { type: "button", class: "scrim", "aria-label": "Close the menu", tabindex: "-1", on: { click: closeSide } },
    ),
    iconButton("side", "Show the sidebar", () => setSide(true), { class: "icon-button side-opener" }),
    main,
    el(
      "nav",
      { class: "tabs", "aria-label": "Screens" },
      el(
        "button",
        { type: "button", class: "tab", "aria-haspopup": "true", "aria-controls": "side", on: { click: openSide } },
        icon("threads", 20),
        el("span", {}, "Threads"),
      ),
      ...PLACES.map((each) => el(
        "a",
        { class: "tab", href: each.hash, dataset: { place: each.name } },
        icon(each.drawn, 20),
        el("span", {}, each.words),
        each.counts ? waitingCount(each.counts) : null,
      )),
    ),
  );
  threads.refresh();
  waiting?.stop();
  waiting = watchWaiting();
}

function foot() {
  const signedIn = app.me.auth !== "off";
  return el(
    "footer",
    { class: "side-foot" },
    el(
      "p",
      { class: "whoami", title: app.me.groups.length ? `Groups: ${app.me.groups.join(", ")}` : null },
      icon("person"),
      el("span", {}, signedIn ? app.me.name : "This computer"),
      app.me.admin && signedIn ? el("span", { class: "badge" }, "admin") : null,
    ),
    app.me.auth === "keys"
      ? el(
        "a",
        { class: "icon-button", href: "#/keys", dataset: { place: "keys" }, "aria-label": "Your API keys", title: "Your API keys" },
        icon("key"),
      )
      : null,
    themeSwitch(app.announce),
    app.me.auth === "keys" ? iconButton("out", "Sign out", signOut) : null,
  );
}

function setSide(/** @type {boolean} */ open) {
  if (open) delete document.documentElement.dataset.side;
  else document.documentElement.dataset.side = "closed";
  remember("assay-side", open ? "" : "closed");
  (open ? side?.querySelector(".wide-only") : document.querySelector(".side-opener"))?.focus();
}

function openSide() {
  shell.classList.add("side-open");
  under(true);
  side?.querySelector(".narrow-only")?.focus();
}

function closeSide() {
  if (!shell.classList.contains("side-open")) return;
  shell.classList.remove("side-open");
  under(false);
  document.querySelector(".tabs .tab")?.focus();
}

/** What the menu covers is out of reach as long as it is open. */
function under(/** @type {boolean} */ on) {
  for (const each of document.querySelectorAll(".main, .tabs")) each.inert = on;
}

// Signing in and out

async function signOut() {
  if (!(await confirm(
    "Sign out?",
    "Runs under way go on; you find them again when you are back.",
    "Sign out",
    "",
  ))) return;
  try {
    await del("/api/session");
  } catch {
    // it has ended already
  }
  await askWho({ out: true });
}

let asking = false;
async function askWho({ out = false } = {}) {
  if (asking) return;
  asking = true;
  try {
    await left();
    waiting?.stop();
    waiting = null;
    main = null;
    threads = null;
    const { signIn } = await import("./screens/signin.js");
    await signIn(fill(shell), app, { out });
  } finally {
    asking = false;
  }
  await start();
}

session.signedOut = () => {
  turn += 1;
  if (app.me?.auth === "off") {
    location.reload(); // the token has changed: the server says where the new one is
    return;
  }
  askWho();
};

async function start() {
  const screen = where();
  if (screen) import(screen.module).catch(() => null); // on its way while the server says who is here
  try {
    app.me = await get("/api/me");
  } catch (problem) {
    if (problem.status !== 401) fill(shell, failed(problem, start, "The page could not be loaded"));
    return;
  }
  session.csrf = app.me.csrf;
  session.eventKinds = app.me.event_kinds;
  shown = "";
  frame();
  await show();
}

window.addEventListener("hashchange", () => {
  if (location.hash !== shown) show();
});

// Others share and withdraw while one is away

document.addEventListener("visibilitychange", () => threads?.lookShared());
window.addEventListener("focus", () => threads?.lookShared());

// Menus close when one presses elsewhere, or Esc

document.addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopImmediatePropagation(); // this, and nothing else, is closed
    return;
  }
  if (event.key === "Escape" && shell.classList.contains("side-open")) {
    closeSide();
    return;
  }
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
  const meant = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!meant || typing || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  const box = questionBox();
  if (box) box.focus();
  else app.go("#/");
});

start();
