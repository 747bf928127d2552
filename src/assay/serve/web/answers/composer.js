// The question box: words, and how they are to be dealt with, which is remembered in this browser. What is searched stays with its
// thread.

import { count, el, fill } from "../lib/dom.js";
import { askForecast } from "./run_forecast.js";
import { icon, segments } from "../lib/ui.js";
import { MODES } from "./modes.js";
import { sourcesChoice, whereBefore, whereOf } from "./sources_choice.js";

const KEY = "assay-ask";
const EAGERNESS = {
  sparing: ["Sparing", "One search where one may do; asks what you mean before it guesses"],
  normal: ["Normal", "Searches as far as the question needs"],
  eager: ["Eager", "Researches whatever can be researched; never asks first"],
};
/** @type {Words} */
const CHECKPOINTS = {
  searches: "After three searches: go on, or answer now?",
  nothing: "When nothing relevant was found: other words?",
  sources: "Before answering: see the sources first",
  reading: "When the question can mean several things: which one?",
};

/**
 * `ask(wish)` is awaited and says whether the question was taken; `stop()` ends the run that is under way. `where` is what the
 * thread has searched so far.
 */
export function composer(/** @type {App} */ app, /** @type {BaseView[]} */ bases, /** @type {WhereView | null} */ where, /** @type {{ ask(request: Asking): Promise<boolean>; stop(): void }} */ { ask, stop }) {
  const preferences = remembered(app, where);
  const box = el("textarea", {
    id: "question",
    rows: "1",
    maxlength: "4000",
    placeholder: "Ask your documents",
    "aria-label": "Your question",
    "aria-describedby": "question-keys",
    autocomplete: "off",
    enterkeyhint: "send",
  });
  const go = el("button", { type: "submit", class: "icon-button primary go" });
  const form = el("form", { class: "composer" });
  let running = false;
  let sending = false;

  const forecast = askForecast(() => request());
  const more = el(
    "div",
    { class: "composer-more", id: "composer-more", hidden: true },
    ...options(app, preferences, changed, forecast.node),
  );
  const openerWords = el("span", { class: "opener-words" }, "Options");
  const opener = el(
    "button",
    { type: "button", class: "button quiet small", "aria-expanded": "false", "aria-controls": more.id, on: {
      click: () => setMore(Boolean(more.hidden)),
    } },
    icon("sliders"),
    openerWords,
  );
  const modes = Object.fromEntries(app.me.modes.map((mode) => [mode, MODES[mode]]));
  const sources = sourcesChoice(app, bases, preferences, changed);

  form.append(
    sources.line,
    el("div", { class: "composer-box" }, box, go),
    el(
      "div",
      { class: "composer-row" },
      segments("How thorough", modes, preferences.mode, (value) => changed({ mode: value })),
      modelMenu(app, preferences, changed),
      sources.opener,
      opener,
      el("span", { class: "keys small", id: "question-keys" }, "Enter asks · Shift+Enter for a new line"),
    ),
    more,
  );

  function setMore(/** @type {boolean} */ open) {
    more.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
  }

  function changed(/** @type {Partial<Preferences>} */ part) {
    Object.assign(preferences, part);
    keep(preferences);
    forecast.stale();
    const other = [preferences.eagerness !== "normal", !preferences.model, preferences.stakes].filter(Boolean).length;
    const set = other + preferences.checkpoints.length; // what differs from how it is without a choice
    openerWords.textContent = set ? `Options (${count(set)})` : "Options";
  }

  function draw() {
    fill(go, icon(running ? "stop" : "up", 20));
    const name = running ? "Stop" : "Ask";
    go.setAttribute("aria-label", name);
    go.title = name;
    go.disabled = sending || (!running && !box.value.trim());
  }

  function grow() {
    box.style.setProperty("height", "auto");
    box.style.setProperty("height", `${Math.min(box.scrollHeight + 2, innerHeight * 0.4)}px`);
  }

  /** What the API wants to know. */
  function request() {
    return {
      question: box.value.trim(),
      mode: preferences.mode,
      eagerness: preferences.eagerness === "normal" ? null : preferences.eagerness,
      checkpoints: preferences.checkpoints.length ? preferences.checkpoints : null,
      model: preferences.model,
      named: preferences.model ? preferences.named : "",
      ...whereOf(preferences),
      ...(preferences.stakes ? { stakes: /** @type {const} */ ("high") } : {}),
    };
  }

  async function send() {
    if (!box.value.trim() || running || sending) return;
    sending = true;
    draw();
    const done = await ask(request());
    sending = false;
    if (done) {
      box.value = "";
      forecast.stale();
      setMore(false);
      grow();
    }
    draw();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) stop();
    else send();
  });
  box.addEventListener("input", () => {
    grow();
    draw();
    forecast.stale();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || more.hidden) return;
    setMore(false);
    opener.focus();
  });
  changed({});
  draw();

  return {
    node: form,
    focus: () => box.focus(),
    /** Ask in these words, as if they had been typed. */
    ask: (/** @type {string} */ words) => {
      box.value = words;
      return send();
    },
    /** The same box's choice, but for this. */
    again: (/** @type {Partial<Asking>} */ part) => {
      if (running || sending) return app.toast("A question is under way. Wait for its answer, or stop it.");
      return ask({ ...request(), ...part });
    },
    setRunning: (/** @type {boolean} */ on) => {
      running = on;
      draw();
    },
    follow: (/** @type {boolean} */ on) => {
      box.placeholder = on ? "Ask a follow-up" : "Ask your documents";
    },
  };
}

function options(/** @type {App} */ app, /** @type {Preferences} */ preferences, /** @type {Choose} */ changed, /** @type {Child} */ after) {
  const check = (/** @type {string} */ words, /** @type {boolean} */ on, /** @type {(on: boolean) => void} */ heard) => {
    const input = el("input", { type: "checkbox", checked: on });
    input.addEventListener("change", () => heard(input.checked));
    return el("label", { class: "check" }, input, el("span", {}, words));
  };
  const known = app.me.checkpoints.filter((each) => each in CHECKPOINTS);
  return [
    el(
      "div",
      { class: "options" },
      el(
        "div",
        { class: "option" },
        el("p", { class: "legend" }, "How readily it searches"),
        segments("How readily it searches", EAGERNESS, preferences.eagerness, (value) => changed({ eagerness: value })),
      ),
      app.me.model ? check("Without a model: quotations only", !preferences.model, (on) => changed({ model: !on })) : null,
      check("High stakes: have it reviewed by a person before I read it", preferences.stakes, (on) => changed({ stakes: on })),
    ),
    el(
      "div",
      { class: "options" },
      el(
        "fieldset",
        { class: "option" },
        el("legend", { class: "legend" }, "Ask me"),
        ...known.map((each) =>
          check(
            CHECKPOINTS[each],
            preferences.checkpoints.includes(each),
            (on) => changed({ checkpoints: toggled(preferences.checkpoints, each, on) }),
          ),
        ),
      ),
      after,
    ),
  ];
}

/** Which of the connected models is asked, where there are several. */
function modelMenu(/** @type {App} */ app, /** @type {Preferences} */ preferences, /** @type {Choose} */ changed) {
  if (app.me.models.length < 2) return null;
  const menu = el(
    "select",
    { class: "model-menu", "aria-label": "Model" },
    el("option", { value: "" }, "Usual model"),
    ...app.me.models.map((name) => el("option", { value: name }, name)),
  );
  menu.addEventListener("change", () => changed({ named: menu.value }));
  return menu;
}

function toggled(/** @type {Checkpoint[]} */ list, /** @type {Checkpoint} */ item, /** @type {boolean} */ on) {
  return on ? [...list, item] : list.filter((other) => other !== item);
}

export function remembered(/** @type {App} */ app, /** @type {WhereView | null} */ where) {
  let kept = /** @type {any} */ ({});
  try {
    kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch {
    // nothing was kept, or nothing that can be read
  }
  return {
    mode: /** @type {Mode} */ (app.me.modes.includes(kept.mode) ? kept.mode : "balanced"),
    eagerness: /** @type {Eagerness} */ (kept.eagerness in EAGERNESS ? kept.eagerness : "normal"),
    checkpoints: app.me.checkpoints.filter((each) => Array.isArray(kept.checkpoints) && kept.checkpoints.includes(each)),
    model: kept.model !== false || !app.me.model,
    ...whereBefore(where),
    named: /** @type {string} */ (""), // a model, chosen for each visit anew
    stakes: false, // chosen for each visit anew: others have work with it
  };
}

function keep(/** @type {Preferences} */ { mode, eagerness, checkpoints, model }) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ mode, eagerness, checkpoints, model }));
  } catch {
    // it holds until the page is left, then
  }
}

