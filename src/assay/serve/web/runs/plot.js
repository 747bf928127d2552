// Bars and lines over named places, drawn to the width there is. The same figures stand below as a table.

import { count, el, fill, svg } from "../lib/dom.js";
import { figureCell, grid } from "../lib/ui.js";

const HEIGHT = 230;
const TOP = 14;
const FOOT = 34;
const RIGHT = 12;
const LETTER = 6.6; // pixels that a letter of a label takes, about
const GAP = 4; // between the bars of two places, at least

/** A drawing with its title, its legend, and its figures on demand. `{title, kind, x, series, threshold}`. */
export function plot(/** @type {Chart} */ chart) {
  const holder = el("div", { class: "plot-drawing" });
  const node = el(
    "figure",
    { class: "plot card" },
    el("figcaption", {}, el("h3", {}, chart.title), legend(chart)),
    holder,
    figures(chart),
  );
  let wide = 0;
  const draw = () => {
    const width = Math.max(260, holder.clientWidth);
    if (Math.abs(width - wide) < 6) return;
    wide = width;
    fill(holder, drawing(chart, width));
  };
  new ResizeObserver(draw).observe(holder);
  return node;
}

function legend(/** @type {Chart} */ { series, threshold }) {
  if (series.length < 2 && threshold === null) return null;
  return el(
    "ul",
    { class: "legend-list" },
    ...(series.length > 1 ? series.map((each, place) => el("li", { dataset: { series: String(place % 5) } }, el("span", { class: "swatch", "aria-hidden": "true" }), each.name)) : []),
    Number.isFinite(threshold) ? el("li", { class: "limit" }, el("span", { class: "swatch", "aria-hidden": "true" }), `threshold ${shortly(threshold)}`) : null,
  );
}

function drawing(/** @type {Chart} */ chart, /** @type {number} */ width) {
  const { title, kind, x, series, threshold } = chart;
  const all = series.flatMap((each) => each.y).filter(Number.isFinite);
  const most = Math.max(0, ...all, Number.isFinite(threshold) ? threshold : 0);
  const least = Math.min(0, ...all);
  const ticks = ticksOf(least, most, all.every(Number.isInteger));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const left = 12 + LETTER * Math.max(...ticks.map((each) => shortly(each).length));
  const across = width - left - RIGHT;
  const room = across / Math.max(1, x.length);
  const up = (/** @type {number} */ value) => TOP + (HEIGHT - TOP - FOOT) * (1 - (value - low) / (high - low || 1));
  const middle = (/** @type {number} */ place) => left + room * (place + 0.5);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": chartLabel(chart) },
    ...ticks.flatMap((each) => [
      svg("line", { x1: left, x2: width - RIGHT, y1: up(each), y2: up(each), class: each === 0 ? "axis" : "rule" }),
      svg("text", { x: left - 6, y: up(each) + 4, "text-anchor": "end" }, shortly(each)),
    ]),
    ...labels(x, room).map(({ place, words }) => svg("text", { x: middle(place), y: HEIGHT - FOOT + 17, "text-anchor": "middle" }, words)),
    ...(kind === "line" ? series.flatMap((each, number) => line(each, number, middle, up)) : bars(series, room, middle, up, x)),
    ...(Number.isFinite(threshold) ? [svg("line", { x1: left, x2: width - RIGHT, y1: up(threshold), y2: up(threshold), class: "limit" })] : []),
    title ? svg("title", {}, title) : null,
  );
}

function bars(/** @type {Series[]} */ series, /** @type {number} */ room, /** @type {(place: number) => number} */ middle, /** @type {(value: number) => number} */ up, /** @type {string[]} */ x) {
  const width = Math.min(48, Math.max(2, (room - GAP) / series.length));
  return series.flatMap((each, number) => each.y.map((value, place) => {
    if (!Number.isFinite(value)) return null;
    const [top, foot] = [Math.min(up(value), up(0)), Math.max(up(value), up(0))];
    return svg(
      "rect",
      {
        x: (middle(place) + (number - series.length / 2) * width + 1).toFixed(1),
        y: top.toFixed(1),
        width: Math.max(1.5, width - 2).toFixed(1),
        height: Math.max(value ? 1 : 0, foot - top).toFixed(1),
        rx: 2,
        "data-series": number % 5,
      },
      svg("title", {}, `${each.name}, ${x[place]}: ${shortly(value)}`),
    );
  })).filter(Boolean);
}

/** A line with a gap where there is no figure. */
function line(/** @type {Series} */ each, /** @type {number} */ number, /** @type {(place: number) => number} */ middle, /** @type {(value: number) => number} */ up) {
  let path = "";
  let broken = true;
  const dots = /** @type {Element[]} */ ([]);
  each.y.forEach((value, place) => {
    if (!Number.isFinite(value)) {
      broken = true;
      return;
    }
    const [x, y] = [middle(place).toFixed(1), up(value).toFixed(1)];
    path += `${broken ? "M" : "L"}${x} ${y}`;
    broken = false;
    dots.push(svg("circle", { cx: x, cy: y, r: 3, "data-series": number % 5 }, svg("title", {}, `${each.name}: ${shortly(value)}`)));
  });
  return [svg("path", { d: path || "M0 0", class: "line", "data-series": number % 5 }), ...dots];
}

/** The labels that fit beside each other: every one, or every second, third … */
function labels(/** @type {string[]} */ x, /** @type {number} */ room) {
  const longest = Math.min(14, Math.max(1, ...x.map((each) => each.length)));
  const step = Math.max(1, Math.ceil((longest * LETTER + 8) / room));
  const letters = Math.max(4, Math.floor((step * room - 4) / LETTER));
  const fitting = (/** @type {string} */ words) => (words.length > letters ? `${words.slice(0, letters - 1)}…` : words);
  return x.map((words, place) => ({ place, words: fitting(words) })).filter(({ place }) => place % step === 0);
}

/** Round figures from the least to the most, four steps or so. */
function ticksOf(/** @type {number} */ least, /** @type {number} */ most, /** @type {boolean} */ whole) {
  const span = most - least || 1;
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough && !(whole && each < 1)) ?? 1;
  const first = Math.floor(least / step);
  const last = Math.max(first + 1, Math.ceil(most / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

function chartLabel(/** @type {Chart} */ { title, kind, x, series, threshold }) {
  const drawn = kind === "line" ? "Line chart" : "Bar chart";
  const over = x.length ? `, ${x[0]}${x.length > 1 ? ` to ${x.at(-1)}` : ""}` : "";
  const limit = Number.isFinite(threshold) ? `; threshold ${shortly(threshold)}` : "";
  return `${drawn}: ${title}. ${series.map((each) => each.name).join(", ")}${over}${limit}. Its figures are in the table below.`;
}

function figures(/** @type {Chart} */ { title, x, series }) {
  const box = el("details", { class: "fold" }, el("summary", {}, "Its figures"));
  box.addEventListener("toggle", () => {
    if (!box.open || box.childElementCount > 1) return;
    const heads = [el("td", {}), ...series.map((each) => el("th", { scope: "col", class: "figure" }, each.name))];
    const rows = x.map((words, place) => [
      el("th", { scope: "row" }, words),
      ...series.map(({ y }) => figureCell(Number.isFinite(y[place]) ? shortly(y[place]) : "–")),
    ]);
    box.append(grid(`Figures: ${title}`, heads, rows, ""));
  });
  return box;
}

/** A figure in as few characters as possible. */
function shortly(/** @type {number} */ value) {
  if (Math.abs(value) >= 1e9) return `${Number((value / 1e9).toFixed(1))}G`;
  if (Math.abs(value) >= 1e6) return `${Number((value / 1e6).toFixed(1))}M`;
  if (Math.abs(value) >= 10_000) return `${Number((value / 1000).toFixed(1))}k`;
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3)));
}
