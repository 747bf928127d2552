// A list that fetches its next page when its end comes near, and keeps only the pages near the window drawn: ten thousand
// entries cost no more than the first few hundred.

import { count, el, fill } from "./dom.js";
import { button, failed, loading } from "./ui.js";

const NEAR = "900px"; // how far below the window the next page is asked for
const FAR = "2500px"; // how far from the window a page is let go; its place is kept

/**
 * @template T
 * @param {Element} holder
 * @param {PagedOptions<T>} options `fetch(after)` gives `{items, next, total}`; `row(item)` a list item; `none()` what is shown when there is nothing;
 * `onCount(total)` hears how many there are. Whatever was begun before `restart` is forgotten.
 */
export function paged(holder, { fetch, row, none, onCount = () => {}, label, look = "list" }) {
  const list = el("div", { class: [look, "paged"], hidden: true });
  const more = button("Show more", { on: () => next() });
  const foot = el("div", { class: "paged-foot" }, loading());
  /** @type {Map<HTMLElement, T[]>} */
  const pages = new Map();
  holder.append(list, foot);
  let after = "";
  let turn = 0;
  let busy = false;
  let shown = 0;

  /** @returns {Promise<void>} */
  async function next(fresh = false) {
    if (busy) return;
    busy = true;
    const own = turn;
    try {
      const page = await fetch(fresh ? "" : after);
      if (own !== turn) return;
      if (fresh) empty();
      if (page.items.length) append(page.items, fresh && !page.next);
      list.hidden = !shown;
      after = page.next;
      onCount(page.total ?? 0);
      fill(foot, after ? more : shown ? null : none());
    } catch (problem) {
      if (own === turn && problem.status !== 401) fill(foot, failed(problem, () => next(fresh)));
      if (!("status" in problem)) console.error(problem);
    } finally {
      if (own === turn) busy = false;
    }
    end.unobserve(foot); // observed anew, it reports at once if the end is still in sight
    if (own === turn && after) end.observe(foot);
  }

  function append(/** @type {T[]} */ items, /** @type {boolean} */ only) {
    const range = only ? label : `${label}, ${count(shown + 1)} to ${count(shown + items.length)}`;
    const node = el("ul", { "aria-label": range }, ...items.map(row));
    pages.set(node, items);
    list.append(node);
    shown += items.length;
    sight.observe(node);
  }

  function empty() {
    sight.disconnect();
    pages.clear();
    fill(list);
    shown = 0;
  }

  /** A page that is far away is let go, unless somebody is in it; one that comes near is drawn again. */
  function seen(/** @type {Sighting} */ { target, isIntersecting, boundingClientRect }) {
    const items = pages.get(target);
    if (!items) return;
    if (isIntersecting && !target.childElementCount) {
      target.append(...items.map(row));
      target.style.removeProperty("height");
    } else if (!isIntersecting && target.childElementCount && boundingClientRect.height && !target.contains(document.activeElement)) {
      target.style.setProperty("height", `${boundingClientRect.height}px`);
      fill(target);
    }
  }

  list.addEventListener("keydown", (event) => {
    if (event.target instanceof Element && event.target.matches("a.row-title")) step(event, [...list.querySelectorAll("a.row-title")]);
  });

  const end = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting) && after && foot.contains(more)) next();
    },
    { rootMargin: NEAR, scrollMargin: NEAR },
  );
  const sight = new IntersectionObserver((entries) => /** @type {Sighting[]} */ (entries).forEach(seen), { rootMargin: FAR, scrollMargin: FAR });

  return {
    /** All that was fetched. */
    get items() {
      return [...pages.values()].flat();
    },
    get shown() {
      return shown;
    },
    /** Draw what is there anew, in its place: something about it has changed. */
    redraw() {
      for (const [node, items] of pages) if (node.childElementCount) fill(node, ...items.map(row));
    },
    /** From the beginning; what is there stays until the first page has come. */
    restart() {
      turn += 1;
      busy = false;
      after = "";
      return next(true);
    },
    close() {
      turn += 1;
      end.disconnect();
      sight.disconnect();
    },
  };
}

/** The arrow keys go from one of these to the next. */
export function step(/** @type {KeyboardEvent} */ event, /** @type {HTMLElement[]} */ stops) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = by && stops[stops.indexOf(/** @type {HTMLElement} */ (event.target)) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
