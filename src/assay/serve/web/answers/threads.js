// Threads at the left: newest first, more as one scrolls, searched by words, renamed and deleted where they stand.

import { at, del, get, patch, post, query } from "../lib/api.js";
import { add, el, fill } from "../lib/dom.js";
import { afterTyping, askWords, atTheEnd, confirm, icon, iconButton } from "../lib/ui.js";
import { shareThread } from "./sharing.js";

const PAGE = 40;

/** @typedef {`/api/shared-threads/${string}` | `/api/offers/${string}`} Offered */

/** The list and its controls. `refresh` reads it anew, `mark` shows which thread is open. */
export function threadList(/** @type {App} */ app) {
  const list = el("div", { class: "threads-list", tabindex: "-1" });
  const search = el(
    "input",
    { type: "search", placeholder: "Find a thread", "aria-label": "Find a thread", autocomplete: "off" },
  );
  const shared = el("div", { class: "shared-threads" });
  const node = el(
    "section",
    { class: "threads", "aria-labelledby": "threads-title" },
    el(
      "div",
      { class: "threads-head" },
      el("h2", { id: "threads-title" }, "Threads"),
      iconButton("plus", "New thread", () => app.go("#/")),
    ),
    el("div", { class: "threads-search" }, search),
    shared,
    list,
  );
  let current = "";
  let lastSeen = "";
  let turn = 0;

  afterTyping(search, refresh);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...list.querySelectorAll("a")];
    const here = links.findIndex((each) => each === document.activeElement);
    const next = links[here + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next && !(here === 0 && event.key === "ArrowUp")) return;
    event.preventDefault();
    (next ?? search).focus();
  });

  /** What others share, above one's own: threads that were accepted, and threads and knowledge bases that are offered. Looked at
   * again with every screen and whenever the page is come back to: others offer and withdraw at any time. */
  async function lookShared() {
    if (app.me.auth === "off" || document.hidden) return;
    let found, bases;
    try {
      [found, bases] = await Promise.all([get("/api/shared-threads"), get("/api/offers")]);
    } catch {
      return; // it stays as it is, until the next look
    }
    const offers = [
      ...found.offers.map((each) => ({ ...each, name: each.title || "Untitled", path: at("api", "shared-threads", each.id), base: false })),
      ...bases.map((each) => ({ ...each, path: at("api", "offers", each.id), base: true })),
    ];
    const seen = JSON.stringify([found.threads, offers]);
    if (seen === lastSeen) return;
    lastSeen = seen;
    const [declined, open] = [true, false].map((is) => offers.filter((each) => each.declined === is));
    const folded = el("details", { open: shared.querySelector("details")?.open }, el("summary", {}, `Declined or left (${declined.length})`), ...declined.map(offer));
    fill(
      shared,
      offers.length + found.threads.length ? el("p", { class: "group" }, "Shared with you") : null,
      ...found.threads.map((each) => el(
        "div",
        { class: "thread" },
        el("a", { href: `#${at("shared", each.id)}`, title: `${each.title} (${each.owner})`, dataset: { thread: each.id } }, each.title || "Untitled"),
        iconButton("close", `Leave “${each.title}”`, () => answer(at("api", "shared-threads", each.id), each.title, false, each.id)),
      )),
      ...open.map(offer),
      declined.length ? folded : null,
    );
    mark(current);
  }

  function offer(/** @type {{ name: string; owner: string; declined: boolean; base: boolean; path: Offered }} */ each) {
    const words = `${each.owner} ${each.base ? "shares" : "offers"} “${each.name}”`;
    return el(
      "div",
      { class: "thread offer" },
      icon(each.base ? "document" : "threads"),
      el("span", { class: "grow", title: each.base ? `${words}: a knowledge base` : words, dir: "auto" }, words),
      iconButton("check", `Accept “${each.name}”`, () => answer(each.path, each.name, true)),
      each.declined ? null : iconButton("close", `Decline “${each.name}”`, () => answer(each.path, each.name, false)),
    );
  }

  /** Accept what is offered, decline it, or leave what was accepted. */
  async function answer(/** @type {Offered} */ path, /** @type {string} */ name, /** @type {boolean} */ accept, thread = "") {
    if (await app.attempt(() => post(path, { accept }))) app.announce(`${accept ? "Accepted" : thread ? "Left" : "Declined"}: ${name}`);
    await lookShared();
    if (thread && thread === current) app.go("#/");
    else if (location.hash.startsWith("#/documents")) app.go(location.hash);
    if (!shared.contains(document.activeElement) && document.activeElement === document.body) search.focus();
  }

  async function refresh() {
    lookShared();
    const own = ++turn;
    const words = search.value.trim();
    let after = "";
    let busy = false;
    let group = "";
    let first = true;
    const end = atTheEnd(more, list);

    async function more() {
      if (busy || own !== turn) return;
      busy = true;
      let page;
      try {
        page = await get(query("/api/threads", { q: words, after, limit: PAGE }));
      } catch (problem) {
        end.stop();
        if (own === turn && problem.status !== 401) fill(list, el("p", { class: "state" }, problem.message));
        return;
      }
      if (own !== turn) return end.stop();
      if (first) {
        fill(list, end);
        list.scrollTop = 0;
      }
      if (first && !page.threads.length) fill(
        list,
        el("p", { class: "state" }, words ? "No thread has these words." : "Your questions will be listed here."),
      );
      first = false;
      for (const thread of page.threads) {
        const day = dayOf(thread.updated);
        if (day !== group) end.before(el("p", { class: "group" }, day));
        group = day;
        end.before(row(thread));
      }
      after = page.next;
      busy = false;
      if (!after) {
        end.stop();
        end.remove();
      } else if (list.scrollHeight <= list.clientHeight + 300) more();
    }

    await more();
  }

  function row(/** @type {ThreadSummary} */ thread) {
    const link = el(
      "a",
      { href: `#${at("thread", thread.id)}`, title: thread.title, dataset: { thread: thread.id } },
      thread.title || "Untitled",
    );
    if (thread.id === current) link.setAttribute("aria-current", "page");
    const line = el("div", { class: "thread" });
    return add(
      line,
      link,
      el(
        "span",
        { class: "thread-tools" },
        app.me.auth === "off" ? null : iconButton("people", `Share “${thread.title}”`, () => shareThread(app, thread)),
        iconButton("pencil", `Rename “${thread.title}”`, () => rename(thread, link)),
        iconButton("trash", `Delete “${thread.title}”`, () => remove(thread, line)),
      ),
    );
  }

  async function rename(/** @type {ThreadSummary} */ thread, /** @type {HTMLAnchorElement} */ link) {
    const title = await askWords("Rename the thread", "Title", thread.title);
    if (!title || title === thread.title) return;
    await app.attempt(async () => {
      await patch(at("api", "threads", thread.id), { title });
      thread.title = title;
      link.textContent = title;
      link.title = title;
      if (thread.id === current) app.title(title);
    });
  }

  async function remove(/** @type {ThreadSummary} */ thread, /** @type {HTMLElement} */ line) {
    if (!(await confirm(
      "Delete this thread?",
      `“${thread.title}” will no longer be here to go on with. The record of what was asked stays under Runs.`,
    ))) return;
    await app.attempt(async () => {
      await del(at("api", "threads", thread.id));
      line.remove();
      app.toast("The thread is deleted.");
      if (thread.id === current) app.go("#/");
    });
  }

  function mark(/** @type {string} */ id) {
    current = id;
    for (const link of node.querySelectorAll("a")) {
      if (link.dataset.thread === id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  return { node, refresh, mark, lookShared };
}

function dayOf(/** @type {string} */ iso) {
  const then = new Date(iso);
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const days = Math.ceil((today.getTime() - then.getTime()) / 86400000);
  if (!(days > 0)) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "This week";
  return then.toLocaleDateString("en", { month: "long", year: "numeric" });
}
