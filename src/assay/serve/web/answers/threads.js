// Threads at the left: newest first, more as one scrolls, searched by words, renamed and deleted where they stand.

import { at, del, get, patch, post, query } from "../lib/api.js";
import { add, el, fill } from "../lib/dom.js";
import { afterTyping, askWords, atTheEnd, confirm, iconButton } from "../lib/ui.js";
import { shareThread } from "./sharing.js";

const PAGE = 40;

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

  /** Threads that others share, above one's own. */
  async function showShared() {
    const found = app.me.auth === "off" ? { threads: [], offers: [] } : await get("/api/shared-threads").catch(() => ({ threads: [], offers: [] }));
    const reply = async (/** @type {string} */ id, /** @type {boolean} */ accept) => {
      await post(at("api", "shared-threads", id), { accept });
      await showShared();
    };
    const offers = found.offers.filter((each) => !each.declined);
    fill(shared, ...(found.threads.length + offers.length
      ? [
        el("p", { class: "group" }, "Shared with you"),
        ...found.threads.map((each) => el(
          "div",
          { class: "thread" },
          el("a", { href: `#${at("shared", each.id)}`, title: `${each.title} (${each.owner})`, dataset: { thread: each.id } }, each.title || "Untitled"),
          iconButton("close", `Leave “${each.title}”`, () => reply(each.id, false)),
        )),
        ...offers.map((each) => el(
          "div",
          { class: "thread" },
          el("span", { title: each.title }, `${each.owner} offers “${each.title || "Untitled"}”`),
          iconButton("check", "Accept", () => reply(each.id, true)),
          iconButton("close", "Decline", () => reply(each.id, false)),
        )),
      ]
      : []));
  }

  async function refresh() {
    showShared();
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
    for (const link of list.querySelectorAll("a")) {
      if (link.dataset.thread === id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  return { node, refresh, mark };
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
