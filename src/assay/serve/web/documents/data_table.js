// Rows of a table with the cited cells marked: a quotation, or a part of a document whose other rows come as one scrolls.

import { add, count, el, fill } from "../lib/dom.js";
import { atTheEnd, button } from "../lib/ui.js";

const MOST = 3; // parts of a table that are on the page at once

/** The rows of a part as a table in a box of its own, in which it scrolls. `said`: the words above it say its caption;
 * `marks` stand before the label of each row. */
export function tableBox(/** @type {TablePart} */ part, { said = "", marks = /** @type {Child[][]} */ ([]) } = {}) {
  const partial = part.rows.length < part.total;
  const caption = [part.caption, part.units, part.period].filter(Boolean).join(" — ");
  const repeated = [part.caption, part.units, part.period].every((words) => !words || said.includes(words));
  const table = el(
    "table",
    {
      "aria-rowcount": partial ? String(part.total + 1) : null,
      "aria-colcount": part.columns.length < part.width ? String(part.width) : null,
    },
    caption ? el("caption", { class: [repeated && "visually-hidden"] }, el("span", { dir: "auto" }, caption)) : null,
    head(part),
    body(part),
  );
  marks.forEach((own, row) => table.tBodies[0].rows[row].cells[0].prepend(el("span", { class: "marks" }, ...own), " "));
  const box = el(
    "div",
    { class: "table-wrap data-table", tabindex: "0", role: "region", "aria-label": caption || "Table" },
    table,
  );
  return { box, table };
}

/** A table of a document. `load({first, rows, at, column})` fetches another part of it. */
export function documentTable(/** @type {TablePart} */ part, /** @type {(wanted: Record<string, unknown>) => Promise<TablePart>} */ load, /** @type {string} */ said) {
  const { box, table } = tableBox(part, { said });
  const foot = el("div", { class: "table-foot small muted figures" });
  const node = el("div", { class: "table-block" }, box, foot);
  let parts = [{ part, rows: table.tBodies[0] }];
  let busy = false;
  let closed = false;
  let before = /** @type {EndMark | null} */ (null);
  let after = /** @type {EndMark | null} */ (null);

  function watch() {
    if (part.rows.length < part.total) {
      before = atTheEnd(earlier, box);
      after = atTheEnd(later, box);
      table.before(before);
      table.after(after);
    }
    tell();
  }

  function tell() {
    const first = parts[0].part.first;
    const last = endOf(parts[parts.length - 1].part);
    const { column, columns, width, total } = parts[0].part;
    const to = column + columns.length - 1;
    const turn = (/** @type {string} */ name, /** @type {number} */ from) => button(name, { kind: "small", on: () => show({ first, column: from }) });
    fill(
      foot,
      last - first < total ? el("span", {}, `Rows ${count(first + 1)} to ${count(last)} of ${count(total)}`) : null,
      columns.length < width ? el("span", {}, `Columns ${count(column + 1)} to ${count(to)} of ${count(width)}`) : null,
      column > 1 ? turn("Columns before", Math.max(1, column - columns.length + 1)) : null,
      to < width ? turn("Next columns", to) : null,
    );
    foot.hidden = !foot.childElementCount;
  }

  async function fetched(/** @type {Record<string, unknown>} */ wanted) {
    if (busy || closed) return null;
    busy = true;
    const found = await load(wanted).catch(() => null);
    busy = false;
    return closed || !found?.rows.length ? null : found;
  }

  async function later() {
    const last = parts[parts.length - 1].part;
    if (endOf(last) >= last.total) return;
    const found = await fetched({ first: endOf(last), column: last.column });
    if (!found) return;
    const kept = parts[parts.length - 1].rows;
    parts.push({ part: found, rows: body(found) });
    kept.after(parts[parts.length - 1].rows);
    if (parts.length > MOST) steady(box, kept, () => parts.shift()?.rows.remove());
    settled();
  }

  async function earlier() {
    const first = parts[0].part;
    if (first.first <= 0) return;
    const start = Math.max(0, first.first - linesOf(first));
    const found = await fetched({ first: start, rows: first.first - start, column: first.column });
    if (!found || endOf(found) !== first.first) return;
    steady(box, parts[0].rows, () => {
      parts.unshift({ part: found, rows: body(found) });
      parts[1].rows.before(parts[0].rows);
      if (parts.length > MOST) parts.pop()?.rows.remove();
    });
    settled();
  }

  function settled() {
    before?.again();
    after?.again();
    tell();
  }

  /** Other rows, or other columns, in place of these. */
  async function show(/** @type {Record<string, unknown>} */ wanted) {
    const found = await fetched(wanted);
    if (!found) return;
    fill(table.createTHead(), ...head(found).childNodes);
    parts.forEach((each) => each.rows.remove());
    parts = [{ part: found, rows: body(found) }];
    table.append(parts[0].rows);
    if (before) settled();
    else tell();
  }

  /** Bring the row at an offset into sight, and fetch it if need be. */
  async function go(/** @type {number} */ offset) {
    const shown = parts.flatMap((each) => each.part.rows);
    const here = shown[0]?.start <= offset && offset < (shown.at(-1)?.end ?? 0);
    if (!here) await show({ at: offset, column: parts[0].part.column });
    const rows = [...table.querySelectorAll("tbody > tr")];
    const row = rows.find((each) => Number(each.dataset.end) > offset);
    if (row) scrollTo(row.cells[0]);
  }

  /** Scroll the box, not what it is in, to a cell. */
  function scrollTo(/** @type {HTMLTableCellElement} */ cell) {
    const own = cell.getBoundingClientRect();
    const all = box.getBoundingClientRect();
    const edge = (cell.parentElement?.firstElementChild ?? cell).getBoundingClientRect();
    const top = table.tHead?.offsetHeight ?? 0;
    box.scrollTop += own.top - all.top - top - (all.height - top) * 0.25;
    if (cell.cellIndex) box.scrollLeft += Math.min(own.left - edge.right, Math.max(0, own.right - all.right + 8));
  }

  return {
    node,
    watch,
    go,
    toMark: () => {
      const cell = box.querySelector("mark")?.closest("td") ?? box.querySelector("mark")?.closest("th");
      if (cell) scrollTo(cell);
    },
    close: () => {
      closed = true;
      before?.stop();
      after?.stop();
    },
  };
}

/** Change what is in a scrolling box while `kept` stays where it is in sight. */
export function steady(/** @type {HTMLElement} */ box, /** @type {Element} */ kept, /** @type {() => void} */ change) {
  const top = kept.getBoundingClientRect().top;
  change();
  box.scrollTop += kept.getBoundingClientRect().top - top;
}

/** How many rows of the table a part has; what is between rows is none of them. */
function linesOf(/** @type {TablePart} */ part) {
  return part.rows.filter((row) => row.cells.length === part.columns.length).length;
}

function endOf(/** @type {TablePart} */ part) {
  return part.first + linesOf(part);
}

function head(/** @type {TablePart} */ part) {
  const name = (/** @type {string} */ words, /** @type {number} */ place) => el(
    "th",
    { scope: "col", dir: "auto", class: classes(part, place, part.cited), "aria-colindex": columnOf(part, place) },
    content(words, part.cited.includes(place)),
  );
  const named = part.columns.some(Boolean);
  return el("thead", {}, named ? el("tr", { "aria-rowindex": "1" }, ...part.columns.map(name)) : null);
}

function body(/** @type {TablePart} */ part) {
  const rows = el("tbody");
  let line = part.first;
  for (const row of part.rows) {
    const between = row.cells.length < part.columns.length;
    const own = el("tr", {
      dataset: { at: String(row.start), end: String(row.end) },
      class: [!between && row.cells.slice(1).every((words) => !words) && "group"],
      "aria-rowindex": between ? null : String((line += 1) + 1),
    });
    if (between) add(own, el("td", { colspan: String(part.columns.length), dir: "auto" }, row.cells[0]));
    else row.cells.forEach((words, place) => own.append(cell(part, row, words, place)));
    rows.append(own);
  }
  return rows;
}

function cell(/** @type {TablePart} */ part, /** @type {PartRow} */ row, /** @type {string} */ words, /** @type {number} */ place) {
  return el(
    place ? "td" : "th",
    {
      scope: place ? null : "row",
      dir: "auto",
      class: classes(part, place, row.cited),
      style: !place && row.level ? { "--level": String(Math.min(row.level, 6)) } : {},
      "aria-colindex": columnOf(part, place),
    },
    content(words, row.cited.includes(place)),
  );
}

function classes(/** @type {TablePart} */ part, /** @type {number} */ place, /** @type {number[]} */ cited) {
  return [part.numeric.includes(place) && "figure", cited.includes(place) && "cited"];
}

function content(/** @type {string} */ words, /** @type {boolean} */ cited) {
  return cited ? el("mark", {}, words) : words;
}

function columnOf(/** @type {TablePart} */ part, /** @type {number} */ place) {
  if (part.columns.length === part.width) return null;
  return String(place ? part.column + place : 1);
}
