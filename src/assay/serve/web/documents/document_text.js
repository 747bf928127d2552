// A document as text and tables, as much of it as one reads, with the cited words and cells marked. Offsets count characters,
// as the server does.

import { get, query } from "../lib/api.js";
import { el, fill, oneLine } from "../lib/dom.js";
import { atTheEnd, failed, loading } from "../lib/ui.js";
import { documentTable, steady } from "./data_table.js";
import { pageAt } from "./page_images.js";

const MOST = 4; // stretches that are on the page at once
const SECTIONS = 500; // that can be chosen from a menu

export function textView(/** @type {DocumentView} */ document_, /** @type {`/api/documents/${string}`} */ path, /** @type {Spot} */ place) {
  const box = el("div", { class: "reading", tabindex: "0", role: "region", "aria-label": "Text of the document" });
  const controls = el("div", { class: "reading-controls" }, el("p", { class: "small muted clip viewer-name" }, document_.name), sectionMenu());
  const quote = place.start !== null && place.end !== null ? { quote_start: place.start, quote_end: place.end } : {};
  let stretches = /** @type {TextStretch[]} */ ([]); // {start, end, nodes, tables}: one after the other
  let busy = false;
  let closed = false;
  let before = /** @type {EndMark | null} */ (null);
  let after = /** @type {EndMark | null} */ (null);
  let aim = /** @type {(() => unknown) | null} */ (null); // brings what was looked for into sight, until the reader goes elsewhere

  const sized = new ResizeObserver(() => aim?.()); // what is around the document comes later than it
  for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"]) box.addEventListener(moved, () => (aim = null), { passive: true });

  function sectionMenu() {
    const sections = document_.sections.slice(0, SECTIONS);
    if (sections.length < 2) return null;
    const menu = el(
      "select",
      { "aria-label": "Go to a section", class: "section-menu" },
      el("option", { value: "" }, document_.kind === "xlsx" ? "Sheets" : "Sections"),
      ...sections.map((section) => el("option", { value: String(section.start) }, oneLine(section.title))),
    );
    menu.addEventListener("change", () => {
      if (menu.value) go(Number(menu.value));
      menu.value = "";
    });
    return menu;
  }

  async function stretch(/** @type {Record<string, unknown>} */ wanted) {
    const reply = await get(query(`${path}/blocks`, { ...wanted, ...quote }));
    /** @type {TextStretch} */
    const made = { start: reply.start, end: reply.end, nodes: [], tables: [] };
    let page = reply.start ? pageAt(document_, reply.start - 1) : 0;
    let said = "";
    for (const block of reply.blocks) {
      for (const { start, node } of block.table ? [table(block, said, made)] : paragraphs(block)) {
        const own = document_.page_starts.length > 1 ? pageAt(document_, start) : page;
        if (own !== page) made.nodes.push(el("p", { class: "page-rule" }, `Page ${(page = own)}`));
        made.nodes.push(node);
      }
      said = oneLine(block.text.slice(-600));
    }
    return made;
  }

  async function begin(offset = place.start ?? 0, marked = true) {
    stopped();
    fill(box, loading("Opening the text…"));
    try {
      const first = await stretch({ at: offset });
      if (closed) return;
      stretches = [first];
      before = atTheEnd(earlier, box);
      after = atTheEnd(later, box);
      fill(box, before, ...first.nodes, after);
      first.tables.forEach((each) => each.watch());
      const mark = marked && place.start !== null ? box.querySelector("mark") : null;
      aim = () => (mark ? toMark(mark) : offset && toOffset(offset));
      requestAnimationFrame(() => aim?.());
    } catch (problem) {
      if (!closed && problem.status !== 401) fill(box, failed(problem, () => begin(offset, marked)));
    }
  }

  async function more(/** @type {Record<string, unknown>} */ wanted, /** @type {(found: TextStretch) => void} */ put) {
    if (busy || closed) return;
    busy = true;
    const found = await stretch(wanted).catch(() => null);
    busy = false;
    if (closed || !found?.nodes.length) return;
    put(found);
    found.tables.forEach((each) => each.watch());
    before?.again();
    after?.again();
  }

  async function earlier() {
    if (stretches[0].start <= 0) return;
    await more({ before: stretches[0].start }, (found) => {
      steady(box, stretches[0].nodes[0], () => before?.after(...found.nodes));
      stretches.unshift(found);
      if (stretches.length > MOST) drop(stretches.splice(-1));
    });
  }

  async function later() {
    const { end } = stretches[stretches.length - 1];
    if (end >= document_.characters) return;
    await more({ start: end }, (found) => {
      after?.before(...found.nodes);
      stretches.push(found);
      if (stretches.length > MOST) steady(box, found.nodes[0], () => drop(stretches.splice(0, 1)));
    });
  }

  function drop(/** @type {TextStretch[]} */ [gone]) {
    gone.tables.forEach((each) => each.close());
    gone.nodes.forEach((node) => node.remove());
  }

  function table(/** @type {Block} */ block, /** @type {string} */ said, /** @type {TextStretch} */ made) {
    const shown = documentTable(/** @type {TablePart} */ (block.table), (wanted) => get(query(`${path}/tables/${block.number}`, { ...wanted, ...quote })), said);
    shown.node.dataset.at = String(block.start);
    made.tables.push({ ...shown, start: block.start, end: block.end });
    return { start: block.start, node: shown.node };
  }

  /** The paragraphs of a block: where each begins, and its element. */
  function paragraphs(/** @type {Block} */ block) {
    const made = [];
    const letters = /[\ud800-\udfff]/.test(block.text) ? Array.from(block.text) : block.text; // characters, not halves of them
    const cut = (/** @type {number} */ a, /** @type {number} */ b) => (typeof letters === "string" ? letters.slice(a, b) : letters.slice(a, b).join(""));
    const headings = new Map(document_.sections.map((section) => [section.start, section]));
    let at = 0;
    for (const end of [...breaks(block.text, typeof letters === "string"), letters.length]) {
      const words = cut(at, end);
      if (words.trim()) {
        const lead = lengthOf(words) - lengthOf(words.trimStart());
        const own = block.start + at;
        const heading = headings.get(own + lead);
        const tag = heading && lengthOf(words.trim()) < 300 ? /** @type {"h3"} */ (`h${Math.min(6, heading.level + 2)}`) : "p";
        made.push({ start: own + lead, node: el(tag, { dataset: { at: String(own) } }, ...marked(own, end - at, cut, at, block.start)) });
      }
      at = end;
    }
    return made;
  }

  /** A paragraph's words, in three parts where some are cited. */
  function marked(/** @type {number} */ own, /** @type {number} */ length, /** @type {(a: number, b: number) => string} */ cut, /** @type {number} */ at, /** @type {number} */ start) {
    const a = Math.max(own, place.start ?? Infinity) - start;
    const b = Math.min(own + length, place.end ?? -Infinity) - start;
    const inside = cut(at, at + length).replace(/\s+$/, "");
    if (!(a < b) || !cut(a, b).trim()) return [inside.replace(/^\n+/, "")];
    return [
      cut(at, a).replace(/^\n+/, ""),
      el("mark", {}, cut(a, b).replace(/\n\s*$/, "")),
      cut(b, at + length).replace(/\s+$/, ""),
    ];
  }

  function toMark(/** @type {HTMLElement} */ mark) {
    const own = tables().find((each) => each.node.contains(mark));
    own?.toMark();
    bring(own ? own.node : mark, own ? 0.08 : 0.3);
  }

  async function toOffset(/** @type {number} */ offset) {
    const own = tables().find((each) => each.start < offset && offset < each.end);
    await own?.go(offset);
    bring(own?.node ?? nodeAt(offset) ?? box, own ? 0.08 : 0.3);
  }

  function tables() {
    return stretches.flatMap((each) => each.tables);
  }

  function nodeAt(/** @type {number} */ offset) {
    const nodes = stretches.flatMap((each) => each.nodes).filter((node) => node.dataset.at);
    return nodes.reverse().find((node) => Number(node.dataset.at) <= offset);
  }

  function bring(/** @type {HTMLElement} */ target, /** @type {number} */ from) {
    const top = target.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    box.scrollTo({ top: Math.max(0, top - box.clientHeight * from) });
  }

  function go(/** @type {number} */ offset) {
    aim = null;
    if (stretches.length && offset >= stretches[0].start && offset < stretches[stretches.length - 1].end) toOffset(offset + 1);
    else begin(offset, false);
  }

  function stopped() {
    before?.stop();
    after?.stop();
    tables().forEach((each) => each.close());
  }

  return {
    node: box,
    controls,
    begin: () => {
      sized.observe(box);
      begin();
    },
    go,
    close: () => {
      closed = true;
      sized.disconnect();
      stopped();
    },
  };
}

function lengthOf(/** @type {string} */ text) {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text).length : text.length;
}

/** Where paragraphs end, in characters. */
function breaks(/** @type {string} */ text, /** @type {boolean} */ plain) {
  const found = [];
  for (const match of text.matchAll(/\n[ \t]*\n+/g)) {
    const end = match.index + match[0].length;
    found.push(plain ? end : lengthOf(text.slice(0, end)));
  }
  return found;
}
