// A run at a glance: what was going on when, in lanes, to scale. The list below says the same in words.

import { seconds, svg } from "../lib/dom.js";
import { FAMILY_WORDS } from "./timeline.js";

const LANE = 22;
const LEFT = 88;
const TOP = 6;
const NARROWEST = 2;

/** The drawing, as wide as there is room. `open(seq)` is called for a bar that is clicked. */
export function chart(/** @type {Timed[]} */ timed, /** @type {number} */ total, /** @type {number} */ width, /** @type {(seq: number) => void} */ open) {
  const lanes = Object.keys(FAMILY_WORDS).filter((family) => timed.some(({ shape }) => shape.family === family));
  const height = TOP + lanes.length * LANE + 22;
  const across = (/** @type {number} */ time) => LEFT + (time / total) * (width - LEFT - 8);
  const bars = timed.map(({ shape, start, end }) => {
    const lane = lanes.indexOf(shape.family);
    const x = Math.min(across(start), width - 8 - NARROWEST);
    return svg(
      "rect",
      {
        x: x.toFixed(1),
        y: TOP + lane * LANE + 4,
        width: Math.max(NARROWEST, across(end) - x).toFixed(1),
        height: LANE - 8,
        rx: 2,
        class: "bar",
        "data-family": lanes[lane],
        "data-seq": shape.seq,
      },
      svg("title", {}, `${shape.seq} ${shape.title}, ${seconds((end - start) / 1000)}`),
    );
  });
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Timeline over ${seconds(total / 1000)}; each event is listed below` },
    ...lanes.flatMap((family, place) => [
      svg("text", { x: 0, y: TOP + place * LANE + 15 }, FAMILY_WORDS[family]),
      svg("line", { x1: LEFT, x2: width - 8, y1: TOP + (place + 1) * LANE, y2: TOP + (place + 1) * LANE, class: "rule" }),
    ]),
    ...ticks(total, width).flatMap((time) => [
      svg("line", { x1: across(time), x2: across(time), y1: TOP, y2: height - 18, class: "rule" }),
      svg("text", { x: across(time), y: height - 4, class: "tick", "text-anchor": time ? "middle" : "start" }, time ? clock(time) : "0"),
    ]),
    ...bars,
  );
  drawing.addEventListener("click", (event) => {
    const seq = event.target instanceof Element && event.target.closest("[data-seq]")?.getAttribute("data-seq");
    if (seq) open(Number(seq));
  });
  return drawing;
}

const STEPS = [0.001, 0.01, 0.1, 1].flatMap((power) => [1, 2, 5].map((each) => each * power)).concat([
  10,
  20,
  30,
  60,
  120,
  300,
  600,
  1200,
  1800,
  3600,
  7200,
  14400,
  43200,
]);

/** Round times, no nearer to each other than their words need. */
function ticks(/** @type {number} */ total, /** @type {number} */ width) {
  const most = Math.max(2, Math.floor((width - LEFT) / 95));
  const step = 1000 * (STEPS.find((each) => total / 1000 / each <= most) ?? 86400);
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, place) => place * step).filter((time) => time <= total * 0.95);
}

function clock(/** @type {number} */ time) {
  const whole = time / 1000;
  if (whole < 1) return `${Math.round(time)} ms`;
  if (whole < 60) return `${Number(whole.toFixed(2))} s`;
  const two = (/** @type {number} */ number) => String(Math.floor(number)).padStart(2, "0");
  return whole < 3600 ? `${Math.floor(whole / 60)}:${two(whole % 60)} min` : `${Math.floor(whole / 3600)}:${two((whole % 3600) / 60)} h`;
}
