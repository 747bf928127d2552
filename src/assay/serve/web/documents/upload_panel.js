// The panel that shows files on their way in: one line for each, and how far all of them are.

import { bytes, dotted, el, fill, plural, seconds } from "../lib/dom.js";
import { button } from "../lib/ui.js";
import { cancel, cancelJob, retry, standing, tidy, watch } from "./uploads.js";

const ROWS = 80; // files that have a line; the others are counted
const FEW = 8; // files that are all shown, also when they are ready
const WORDS = {
  queued: "to be sent",
  sending: "sending",
  waiting: "waiting",
  reading: "reading",
  ready: "ready",
  unreadable: "could not be read",
  failed: "could not be sent",
  cancelled: "cancelled",
};
const SIGNS = { ready: "✓", unreadable: "✕", failed: "✕", cancelled: "–", reading: "◐", sending: "↑", waiting: "·", queued: "·" };
const ORDER = ["sending", "reading", "failed", "unreadable", "waiting", "queued", "ready", "cancelled"];

/** The panel, kept up to date while it is shown. Returns how to leave it. */
export function adding(/** @type {HTMLElement} */ holder, /** @type {App} */ app) {
  const bar = el("progress", { max: "1", value: "0", "aria-label": "Work that is done" });
  const heading = el("h2", {});
  const line = el("p", { class: "small muted figures" });
  const list = el("ul", { class: "adding-files", "aria-label": "Files being added", tabindex: "0" });
  const jobs = el("div", { class: "adding-jobs" });
  const buttons = el("div", { class: "actions" });
  const head = el("div", { class: "adding-head" }, heading, buttons);
  const panel = el("section", { class: "card adding", "aria-label": "Files being added" }, head, bar, line, jobs, list);
  const rows = new Map();
  let milestone = 0;

  function draw(/** @type {Standing} */ now) {
    panel.hidden = !now.items.length && !now.earlier.length;
    holder.classList.toggle("is-adding", !panel.hidden);
    if (panel.hidden) return;
    const own = now.items.length > 0;
    heading.textContent = title(now);
    bar.hidden = line.hidden = list.hidden = !own;
    bar.value = own ? now.part : 0;
    line.textContent = inWords(now);
    actions(now);
    drawJobs(now.earlier);
    drawFiles(now.items, now.done === now.items.length);
    announce(now);
  }

  function actions(/** @type {Standing} */ now) {
    const offered = [
      now.busy && now.items.length ? { name: "Cancel", on: () => cancel().catch((problem) => app.toast(problem.message, "bad")) } : null,
      now.count.failed ? { name: "Send again", on: retry } : null,
      now.items.length && !now.busy ? { name: "Close", on: tidy } : null,
    ];
    const wanted = offered.filter((each) => each !== null);
    const key = wanted.map(({ name }) => name).join();
    if (buttons.dataset.key === key) return; // a button that is pressed just now must stay where it is
    buttons.dataset.key = key;
    fill(buttons, ...wanted.map(({ name, on }) => button(name, { on, kind: "small" })));
  }

  function drawFiles(/** @type {Item[]} */ items, /** @type {boolean} */ over) {
    const shown = foremost(items, over);
    for (const [item, row] of rows) {
      if (!shown.includes(item)) {
        row.node.remove();
        rows.delete(item);
      }
    }
    shown.forEach((item, place) => {
      if (!rows.has(item)) rows.set(item, fileRow(item));
      const row = rows.get(item);
      row.update();
      if (list.children[place] !== row.node) list.insertBefore(row.node, list.children[place] ?? null);
    });
    const more = items.length - shown.length;
    let rest = list.querySelector(".adding-rest");
    if (!more) rest?.remove();
    else {
      rest ??= el("li", { class: "adding-rest" });
      rest.textContent = over && shown.every((item) => item.state !== "ready") ? `${plural(more, "file")} ready` : `and ${plural(more, "more file")}`;
      list.append(rest);
    }
  }

  function drawJobs(/** @type {JobView[]} */ earlier) {
    const key = earlier.map((job) => `${job.id}:${job.done}:${job.state}`).join();
    if (jobs.dataset.key === key) return;
    jobs.dataset.key = key;
    const bases = [...new Set(earlier.map((job) => job.base))];
    fill(jobs, ...bases.map((base) => jobsRow(base, earlier.filter((job) => job.base === base), app)));
  }

  /** Said aloud at every quarter and at the end, not at every file. */
  function announce(/** @type {Standing} */ now) {
    if (!now.items.length) return;
    const quarter = Math.floor((4 * now.done) / now.items.length);
    if (quarter > milestone) app.announce(inWords(now));
    milestone = quarter;
  }

  holder.append(panel);
  draw(standing());
  return watch(draw);
}

function title(/** @type {Standing} */ now) {
  if (!now.items.length) return "Still being read";
  const bases = [...new Set(now.items.map((item) => item.base))];
  const where = bases.length === 1 ? ` to ${bases[0]}` : "";
  return now.done < now.items.length ? `Adding ${plural(now.items.length, "file")}${where}` : `Added${where}`;
}

function inWords(/** @type {Standing} */ now) {
  const { count } = now;
  const pace = [];
  if (now.done < now.items.length) {
    if (now.rate) pace.push(`${bytes(now.rate)}/s`);
    if (now.left !== null) pace.push(`about ${seconds(now.left)} left`);
  }
  return dotted(
    `${count.ready} of ${now.items.length} ready`,
    now.pages ? plural(now.pages, "page") : "",
    count.unreadable ? `${count.unreadable} could not be read` : "",
    count.failed ? `${count.failed} could not be sent` : "",
    count.cancelled ? `${count.cancelled} cancelled` : "",
    ...pace,
  );
}

/** The files that are worth a line: what moves and what went wrong before what is done; in the end what went wrong. */
function foremost(/** @type {Item[]} */ items, /** @type {boolean} */ over) {
  if (over && items.length > FEW) return items.filter((item) => item.state !== "ready").slice(0, ROWS);
  if (items.length <= ROWS) return items;
  return ORDER.flatMap((state) => items.filter((item) => item.state === state)).slice(0, ROWS);
}

function fileRow(/** @type {Item} */ item) {
  const sign = el("span", { class: "sign", "aria-hidden": "true" });
  const name = el("span", { class: "adding-name", dir: "auto" }, item.path);
  const state = el("span", { class: "adding-state" });
  const why = el("p", { class: "adding-why", hidden: true });
  const node = el("li", {}, sign, name, el("span", { class: "adding-size" }, bytes(item.bytes)), state, why);
  let drawn = "";
  return {
    node,
    update() {
      const percent = item.state === "sending" ? Math.round(item.fraction * 100) : 0;
      const key = `${item.state}${percent}`;
      if (key === drawn) return;
      drawn = key;
      node.dataset.state = item.state;
      node.style.setProperty("--sent", `${percent}%`);
      sign.textContent = SIGNS[item.state];
      const pages = item.state === "ready" && item.pages > 1 ? `, ${plural(item.pages, "page")}` : "";
      const words = item.state === "sending" ? `sending ${percent} %` : `${WORDS[item.state]}${pages}`;
      state.textContent = item.note ? `${words} (${item.note})` : words;
      why.textContent = item.why;
      why.hidden = !item.why;
    },
  };
}

/** What an earlier visit has sent into one base, as one piece of work. */
function jobsRow(/** @type {string} */ base, /** @type {JobView[]} */ own, /** @type {App} */ app) {
  const files = own.reduce((sum, job) => sum + job.files, 0);
  const done = own.reduce((sum, job) => sum + job.done, 0);
  const left = own.length === 1 && own[0].left !== null ? `, about ${seconds(own[0].left)} left` : "";
  const words = `${base}: ${done} of ${plural(files, "file")} read${left}`;
  const stop = async () => {
    await app.attempt(async () => {
      await Promise.all(own.map((job) => cancelJob(job.id)));
    });
  };
  return el(
    "div",
    { class: "adding-job" },
    el("progress", { max: String(files || 1), value: String(done), "aria-label": words }),
    el("span", { class: "figures" }, words),
    button("Cancel", { on: stop, kind: "small", "aria-label": `Cancel reading into ${base}` }),
  );
}
