// Rows of a table with the cited cells marked: a quotation, or a part of a document whose other rows come as one scrolls.

import { add, clear, count, el, fill } from "../lib/dom.js";
import { atTheEnd, button } from "../lib/ui.js";

const MOST = 3; // parts of a table that are on the page at once

/** The rows of a part as a table in a box of its own, in which it scrolls. `said`: the words above it say its caption. */
export function tableBox(part, { said = "" } = {}) {
  const partial = part.rows.length < part.total;
  const caption = [part.caption, part.units, part.period].filter(Boolean).join(" — ");
  const repeated = [part.caption, part.units, part.period].every((words) => !words || said.includes(words));
  const table = el(
    "table",
    {
      "aria-rowcount": partial ? String(part.total + 1) : null,
      "aria-colcount": part.columns.length < part.width ? String(part.width) : null,
    },
    caption ? el("caption", { class: repeated && "visually-hidden" }, el("span", { dir: "auto" }, caption)) : null,
    head(part),
    body(part),
  );
  const box = el(
    "div",
    { class: "table-wrap data-table", tabindex: "0", role: "region", "aria-label": caption || "Table" },
    table,
  );
  return { box, table };
}

/** A table of a document. `load({first, rows, at, column})` fetches another part of it. */
export function documentTable(part, load, said) {
  const { box, table } = tableBox(part, { said });
  const foot = el("div", { class: "table-foot small muted figures" });
  const node = el("div", { class: "table-block" }, box, foot);
  let parts = [{ part, rows: table.tBodies[0] }];
  let busy = false;
  let closed = false;
  let before = null;
  let after = null;

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
    const last = endOf(parts.at(-1).part);
    const { column, columns, width, total } = parts[0].part;
    const to = column + columns.length - 1;
    const turn = (name, from) => button(name, { kind: "small", on: () => show({ first, column: from }) });
    fill(
      foot,
      last - first < total ? el("span", {}, `Rows ${count(first + 1)} to ${count(last)} of ${count(total)}`) : null,
      columns.length < width ? el("span", {}, `Columns ${count(column + 1)} to ${count(to)} of ${count(width)}`) : null,
      column > 1 ? turn("Columns before", Math.max(1, column - columns.length + 1)) : null,
      to < width ? turn("Next columns", to) : null,
    );
    foot.hidden = !foot.childElementCount;
  }

  async function fetched(wanted) {
    if (busy || closed) return null;
    busy = true;
    const found = await load(wanted).catch(() => null);
    busy = false;
    return closed || !found?.rows.length ? null : found;
  }

  async function later() {
    const last = parts.at(-1).part;
    if (endOf(last) >= last.total) return;
    const found = await fetched({ first: endOf(last), column: last.column });
    if (!found) return;
    parts.push({ part: found, rows: body(found) });
    table.append(parts.at(-1).rows);
    if (parts.length > MOST) steady(box, parts.at(-2).rows, () => parts.shift().rows.remove());
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
      if (parts.length > MOST) parts.pop().rows.remove();
    });
    settled();
  }

  function settled() {
    before.again();
    after.again();
    tell();
  }

  /** Other rows, or other columns, in place of these. */
  async function show(wanted) {
    const found = await fetched(wanted);
    if (!found) return;
    clear(table.tHead).append(...head(found).childNodes);
    parts.forEach((each) => each.rows.remove());
    parts = [{ part: found, rows: body(found) }];
    table.append(parts[0].rows);
    if (before) settled();
    else tell();
  }

  /** Bring the row at an offset into sight, and fetch it if need be. */
  async function go(offset) {
    const here = parts[0].part.rows[0]?.start <= offset && offset < parts.at(-1).part.rows.at(-1)?.end;
    if (!here) await show({ at: offset, column: parts[0].part.column });
    const rows = [...table.querySelectorAll("tbody > tr")];
    const row = rows.find((each) => Number(each.dataset.end) > offset);
    if (row) scrollTo(row.cells[0]);
  }

  /** Scroll the box, not what it is in, to a cell. */
  function scrollTo(cell) {
    const own = cell.getBoundingClientRect();
    const all = box.getBoundingClientRect();
    const edge = cell.parentElement.cells[0].getBoundingClientRect();
    box.scrollTop += own.top - all.top - table.tHead.offsetHeight - (all.height - table.tHead.offsetHeight) * 0.25;
    if (cell.cellIndex) box.scrollLeft += Math.min(own.left - edge.right, Math.max(0, own.right - all.right + 8));
  }

  return {
    node,
    watch,
    go,
    toMark: () => {
      const mark = box.querySelector("mark");
      if (mark) scrollTo(mark.closest("th, td"));
    },
    close: () => {
      closed = true;
      before?.stop();
      after?.stop();
    },
  };
}

/** Change what is in a scrolling box while `kept` stays where it is in sight. */
export function steady(box, kept, change) {
  const top = kept.getBoundingClientRect().top;
  change();
  box.scrollTop += kept.getBoundingClientRect().top - top;
}

/** How many rows of the table a part has; what is between rows is none of them. */
function linesOf(part) {
  return part.rows.filter((row) => row.cells.length === part.columns.length).length;
}

function endOf(part) {
  return part.first + linesOf(part);
}

function head(part) {
  const name = (words, place) => el(
    "th",
    { scope: "col", dir: "auto", class: classes(part, place, part.cited), "aria-colindex": columnOf(part, place) },
    content(words, part.cited.includes(place)),
  );
  const named = part.columns.some(Boolean);
  return el("thead", {}, named ? el("tr", { "aria-rowindex": "1" }, ...part.columns.map(name)) : null);
}

function body(part) {
  const rows = el("tbody");
  let line = part.first;
  for (const row of part.rows) {
    const between = row.cells.length < part.columns.length;
    const own = el("tr", {
      dataset: { at: String(row.start), end: String(row.end) },
      class: !between && row.cells.slice(1).every((words) => !words) && "group",
      "aria-rowindex": between ? null : String((line += 1) + 1),
    });
    if (between) add(own, el("td", { colspan: String(part.columns.length), dir: "auto" }, row.cells[0]));
    else row.cells.forEach((words, place) => own.append(cell(part, row, words, place)));
    rows.append(own);
  }
  return rows;
}

function cell(part, row, words, place) {
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

function classes(part, place, cited) {
  return [part.numeric.includes(place) && "figure", cited.includes(place) && "cited"];
}

function content(words, cited) {
  return cited ? el("mark", {}, words) : words;
}

function columnOf(part, place) {
  if (part.columns.length === part.width) return null;
  return String(place ? part.column + place : 1);
}
