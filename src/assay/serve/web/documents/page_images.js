// Pages as pictures, each fetched when it comes near and let go of when it is far, with the cited words marked on them.

import { get, query } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { iconButton } from "../lib/ui.js";

const NEAR = "1200px"; // how far beyond the window pages are fetched
const WIDTHS = [800, 1200, 1600, 2000];

export function pagesView(/** @type {DocumentView} */ document_, /** @type {`/api/documents/${string}`} */ path, /** @type {Spot} */ place) {
  const many = Math.max(1, document_.pages);
  const first = place.page ?? pageAt(document_, place.start) ?? 1;
  const box = el("div", { class: "leaves", tabindex: "0", role: "region", "aria-label": "Pages of the document" });
  const field = el(
    "input",
    { type: "text", inputmode: "numeric", value: String(first), "aria-label": `Page, of ${many}`, class: "page-number" },
  );
  const controls = el(
    "div",
    { class: "page-controls" },
    iconButton("left", "Page before", () => goTo(current - 1)),
    field,
    el("span", { class: "small muted nowrap figures" }, `of ${many.toLocaleString("en")}`),
    iconButton("right", "Next page", () => goTo(current + 1)),
    place.start === null ? null : iconButton("target", "Back to the quotation", () => toWords(true)),
  );
  const leaves = /** @type {HTMLElement[]} */ ([]);
  let boxes = /** @type {Map<number, PageBox[]>} */ (new Map()); // by page
  let current = first;
  let closed = false;
  let settled = false; // whether the reader has been brought to the words

  for (let page = 1; page <= many; page += 1) {
    const leaf = el(
      "figure",
      { class: "leaf", dataset: { page: String(page) }, "aria-label": `Page ${page} of ${many}` },
    );
    leaves.push(leaf);
  }
  box.append(...leaves);

  const near = new IntersectionObserver(
    (seen) => /** @type {Sighting[]} */ (seen).forEach((each) => (each.isIntersecting ? paint(each.target) : release(each.target))),
    { root: box, rootMargin: NEAR },
  );
  const here = new IntersectionObserver(
    () => {
      const middle = box.getBoundingClientRect().top + box.clientHeight / 3;
      const now = leaves.find((leaf) => leaf.getBoundingClientRect().bottom > middle);
      if (!now) return;
      current = Number(now.dataset.page);
      if (document.activeElement !== field) field.value = String(current);
    },
    { root: box, threshold: [0, 0.25, 0.5, 0.75, 1] },
  );

  function paint(/** @type {HTMLElement} */ leaf) {
    if (leaf.firstElementChild) return;
    const page = Number(leaf.dataset.page);
    const wanted = box.clientWidth * Math.min(2, devicePixelRatio || 1);
    const width = WIDTHS.find((each) => each >= wanted) ?? WIDTHS.at(-1);
    const picture = el(
      "img",
      { alt: `Page ${page} of ${many}`, decoding: "async", src: query(`${path}/pages/${page}`, { width }) },
    );
    picture.addEventListener("load", () => {
      const ratio = `${picture.naturalWidth} / ${picture.naturalHeight}`;
      leaf.style.setProperty("aspect-ratio", ratio);
      if (!box.dataset.ratio) {
        box.dataset.ratio = ratio; // pages mostly look alike: the others move less when they come
        for (const other of leaves) if (!other.firstElementChild) other.style.setProperty("aspect-ratio", ratio);
      }
      leaf.classList.add("painted");
      if (page === first && !settled) toWords();
    });
    picture.addEventListener("error", () => {
      fill(
        leaf,
        el("p", { class: "state slim" }, `Page ${page} cannot be shown as a picture. Its words are under “Text”.`),
      );
      leaf.classList.add("painted");
    });
    leaf.append(picture);
    mark(leaf);
  }

  function release(/** @type {HTMLElement} */ leaf) {
    if (!leaf.classList.contains("painted")) return;
    leaf.classList.remove("painted");
    leaf.replaceChildren();
  }

  function mark(/** @type {HTMLElement} */ leaf) {
    leaf.querySelectorAll(".leaf-words").forEach((each) => each.remove());
    for (const each of boxes.get(Number(leaf.dataset.page)) ?? []) {
      leaf.append(
        el("span", {
          class: "leaf-words",
          "aria-hidden": "true",
          style: {
            left: percent(each.x0),
            top: percent(each.y0),
            width: percent(each.x1 - each.x0),
            height: percent(each.y1 - each.y0),
          },
        }),
      );
    }
  }

  /** Bring the cited words into view. */
  function toWords(again = false) {
    const page = boxes.size ? Math.min(...boxes.keys()) : first;
    const leaf = leaves[page - 1];
    if (!leaf) return;
    const top = boxes.size ? Math.min(...(boxes.get(page) ?? []).map((each) => each.y0)) : 0;
    const offset = leaf.offsetTop - box.offsetTop + top * leaf.clientHeight - (boxes.size ? box.clientHeight * 0.3 : 8);
    box.scrollTo({ top: Math.max(0, offset), behavior: again ? "smooth" : "instant" });
    if (boxes.size && leaf.classList.contains("painted")) settled = true;
  }

  function goTo(/** @type {number} */ page) {
    const wanted = Math.max(1, Math.min(many, page || 1));
    current = wanted;
    field.value = String(wanted);
    const leaf = leaves[wanted - 1];
    settled = true;
    box.scrollTo({ top: Math.max(0, leaf.offsetTop - box.offsetTop - 8) });
  }

  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") goTo(Number(field.value));
  });
  field.addEventListener("change", () => goTo(Number(field.value)));

  async function begin() {
    leaves.forEach((leaf) => (near.observe(leaf), here.observe(leaf)));
    box.scrollTo({ top: Math.max(0, leaves[Math.min(first, many) - 1].offsetTop - box.offsetTop - 8) });
    if (place.start === null || place.end === null) return;
    try {
      const found = await get(query(`${path}/boxes`, { start: place.start, end: place.end }));
      if (closed) return;
      boxes = Map.groupBy ? Map.groupBy(found.boxes, (each) => each.page) : grouped(found.boxes);
      leaves.forEach((leaf) => leaf.firstElementChild && mark(leaf));
      toWords();
    } catch {
      // the page without marks is better than no page
    }
  }

  return {
    node: box,
    controls,
    begin,
    go: (/** @type {number} */ offset) => goTo(pageAt(document_, offset) ?? 1),
    close: () => {
      closed = true;
      near.disconnect();
      here.disconnect();
    },
  };
}

function grouped(/** @type {PageBox[]} */ boxes) {
  const by = new Map();
  for (const each of boxes) by.set(each.page, [...(by.get(each.page) ?? []), each]);
  return by;
}

function percent(/** @type {number} */ fraction) {
  return `${(fraction * 100).toFixed(3)}%`;
}

/** The page on which a character stands. */
export function pageAt(/** @type {DocumentView} */ document_, /** @type {number | null} */ offset) {
  if (offset === null || !document_.page_starts.length) return null;
  let page = 0;
  while (page < document_.page_starts.length && document_.page_starts[page] <= offset) page += 1;
  return Math.max(1, page);
}
