// A document's text, as much of it as one reads, with the cited words marked. Offsets count characters, as the server does.

import { get, query } from "../lib/api.js";
import { clear, el } from "../lib/dom.js";
import { atTheEnd, failed, loading } from "../lib/ui.js";

const AT_ONCE = 60000; // characters; a chapter or two

export function textView(document_, path, place) {
  const box = el("div", { class: "reading", tabindex: "0", role: "region", "aria-label": "Text of the document" });
  const controls = el("p", { class: "small muted clip viewer-name" }, document_.name);
  let from = 0; // what is shown: text[from:to]
  let to = 0;
  let busy = false;
  let closed = false;
  let before = null;
  let after = null;

  async function stretch(start, end) {
    const reply = await get(query(`${path}/text`, { start, end: Math.min(end, document_.characters) }));
    return reply.text;
  }

  async function begin(offset = place.start ?? 0, marked = true) {
    stopped();
    clear(box).append(loading("Opening the text…"));
    const start = document_.characters <= AT_ONCE ? 0 : startOf(document_, Math.max(0, offset - AT_ONCE / 4));
    try {
      const text = await stretch(start, start + AT_ONCE);
      if (closed) return;
      from = start;
      to = start + lengthOf(text);
      before = atTheEnd(earlier, box);
      after = atTheEnd(later, box);
      clear(box).append(before, ...paragraphs(text, from), after);
      const target = marked && place.start !== null ? box.querySelector("mark") : nodeAt(offset);
      if (target) requestAnimationFrame(() => bring(target));
    } catch (problem) {
      if (!closed && problem.status !== 401) clear(box).append(failed(problem, () => begin(offset, marked)));
    }
  }

  async function earlier() {
    if (busy || closed || from <= 0) return;
    busy = true;
    const start = Math.max(0, from - AT_ONCE);
    const text = await stretch(start, from).catch(() => "");
    if (!closed && text) {
      const height = box.scrollHeight;
      before.after(...paragraphs(text, start));
      if (getComputedStyle(box).overflowAnchor === "none") box.scrollTop += box.scrollHeight - height;
      from = start;
    }
    busy = false;
  }

  async function later() {
    if (busy || closed || to >= document_.characters) return;
    busy = true;
    const text = await stretch(to, to + AT_ONCE).catch(() => "");
    if (!closed && text) {
      after.before(...paragraphs(text, to));
      to += lengthOf(text);
    }
    busy = false;
  }

  function paragraphs(text, start) {
    const made = [];
    const letters = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text; // characters, not halves of them
    const cut = (a, b) => (typeof letters === "string" ? letters.slice(a, b) : letters.slice(a, b).join(""));
    const headings = new Map(document_.sections.map((section) => [section.start, section]));
    const pages = document_.page_starts.length > 1 ? document_.page_starts : [];
    let page = pages.findIndex((offset) => offset >= start);
    const ends = breaks(typeof letters === "string" ? letters : letters.join(""), typeof letters === "string");
    let at = 0;
    for (const end of [...ends, letters.length]) {
      const words = cut(at, end);
      if (words.trim()) {
        const lead = lengthOf(words) - lengthOf(words.trimStart());
        const own = start + at;
        while (page >= 0 && page < pages.length && pages[page] <= own + lead) made.push(el(
          "p",
          { class: "page-rule" },
          `Page ${(page += 1)}`,
        ));
        const heading = headings.get(own + lead);
        const tag = heading && lengthOf(words.trim()) < 300 ? `h${Math.min(6, heading.level + 2)}` : "p";
        made.push(el(tag, { dataset: { at: String(own) } }, ...marked(own, end - at, cut, at, start)));
      }
      at = end;
    }
    return made;
  }

  /** A paragraph's words, in three parts where some are cited. */
  function marked(own, length, cut, at, start) {
    const a = Math.max(own, place.start ?? Infinity) - start;
    const b = Math.min(own + length, place.end ?? -Infinity) - start;
    const inside = cut(at, at + length).replace(/\s+$/, "");
    if (!(a < b)) return [inside.replace(/^\n+/, "")];
    return [
      cut(at, a).replace(/^\n+/, ""),
      el("mark", {}, cut(a, b).replace(/\n\s*$/, "")),
      cut(b, at + length).replace(/\s+$/, ""),
    ];
  }

  function nodeAt(offset) {
    return [...box.querySelectorAll("[data-at]")].reverse().find((node) => Number(node.dataset.at) <= offset);
  }

  function bring(target) {
    const top = target.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    box.scrollTo({ top: Math.max(0, top - box.clientHeight * 0.3) });
  }

  function stopped() {
    before?.stop();
    after?.stop();
  }

  return {
    node: box,
    controls,
    begin: () => begin(),
    go: (offset) => {
      if (offset >= from && offset < to) bring(nodeAt(offset + 1) ?? box);
      else begin(offset, false);
    },
    close: () => {
      closed = true;
      stopped();
    },
  };
}

/** Where a stretch may begin without cutting a paragraph: at a section or a page. */
function startOf(document_, offset) {
  const places = [...document_.sections.map((section) => section.start), ...document_.page_starts];
  return Math.max(0, ...places.filter((place) => place <= offset), offset - AT_ONCE / 4);
}

function lengthOf(text) {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text).length : text.length;
}

/** Where paragraphs end, in characters. */
function breaks(text, plain) {
  const found = [];
  for (const match of text.matchAll(/\n[ \t]*\n+/g)) {
    const end = match.index + match[0].length;
    found.push(plain ? end : lengthOf(text.slice(0, end)));
  }
  return found;
}
