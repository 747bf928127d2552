// Threads at the left: newest first, more as one scrolls, searched by words, renamed and deleted where they stand.

import { at, del, get, patch, query } from "../lib/api.js";
import { clear, el, fill } from "../lib/dom.js";
import { askWords, atTheEnd, confirm, iconButton } from "../lib/ui.js";
import { shareThread } from "./sharing.js";

const PAGE = 40;

/** The list and its controls. `refresh` reads it anew, `mark` shows which thread is open. */
export function threadList(app) {
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
  let wait = 0;

  search.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(refresh, 200);
  });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...list.querySelectorAll("a")];
    const here = links.indexOf(document.activeElement);
    const next = links[here + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next && !(here === 0 && event.key === "ArrowUp")) return;
    event.preventDefault();
    (next ?? search).focus();
  });

  /** Threads that others share, above one's own. */
  async function showShared() {
    const found = app.me.auth === "off" ? { threads: [] } : await get("/api/shared-threads").catch(() => ({ threads: [] }));
    fill(shared, ...(found.threads.length
      ? [
        el("p", { class: "group" }, "Shared with you"),
        ...found.threads.map((each) => el(
          "div",
          { class: "thread" },
          el("a", { href: `#/shared/${encodeURIComponent(each.id)}`, title: `${each.title} (${each.owner})`, dataset: { thread: each.id } }, each.title || "Untitled"),
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
        if (own === turn && problem.status !== 401) fill(list, el("p", { class: "state" }, problem.detail));
        return;
      }
      if (own !== turn) return end.stop();
      if (first) {
        clear(list).append(end);
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

  function row(thread) {
    const link = el(
      "a",
      { href: `#/thread/${encodeURIComponent(thread.id)}`, title: thread.title, dataset: { thread: thread.id } },
      thread.title || "Untitled",
    );
    if (thread.id === current) link.setAttribute("aria-current", "page");
    const line = el(
      "div",
      { class: "thread" },
      link,
      el(
        "span",
        { class: "thread-tools" },
        app.me.auth === "off" ? null : iconButton("people", `Share “${thread.title}”`, () => shareThread(app, thread)),
        iconButton("pencil", `Rename “${thread.title}”`, () => rename(thread, link)),
        iconButton("trash", `Delete “${thread.title}”`, () => remove(thread, line)),
      ),
    );
    return line;
  }

  async function rename(thread, link) {
    const title = await askWords("Rename the thread", "Title", thread.title);
    if (!title || title === thread.title) return;
    try {
      await patch(at("api", "threads", thread.id), { title });
      thread.title = title;
      link.textContent = title;
      link.title = title;
      if (thread.id === current) app.title(title);
    } catch (problem) {
      app.toast(problem.detail, "bad");
    }
  }

  async function remove(thread, line) {
    if (!(await confirm(
      "Delete this thread?",
      `“${thread.title}” will no longer be here to go on with. The record of what was asked stays under Runs.`,
    ))) return;
    try {
      await del(at("api", "threads", thread.id));
      line.remove();
      app.toast("The thread is deleted.");
      if (thread.id === current) app.go("#/");
    } catch (problem) {
      app.toast(problem.detail, "bad");
    }
  }

  function mark(id) {
    current = id;
    for (const link of list.querySelectorAll("a")) {
      if (link.dataset.thread === id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  return { node, refresh, mark };
}

function dayOf(iso) {
  const then = new Date(iso);
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const days = Math.ceil((today - then) / 86400000);
  if (!(days > 0)) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "This week";
  return then.toLocaleDateString("en", { month: "long", year: "numeric" });
}
