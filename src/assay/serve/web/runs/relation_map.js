// Which documents relate to which: documents on a circle, relations as curves between them, each type with its own line.

import { plural, svg } from "../lib/dom.js";

const SIZE = 360;
const MIDDLE = SIZE / 2;
const RADIUS = 138;
const MOST = 60; // documents on a circle; with more, labels would lie on each other

export function relationMap(/** @type {Recorded["Relation"][]} */ relations, /** @type {Map<string, string>} */ labels, /** @type {Words} */ titles) {
  const involved = [...labels.keys()].filter((id) => relations.some(({ left, right }) => left.doc_id === id || right.doc_id === id));
  if (involved.length > MOST) return null; // the page has the large map
  const place = Object.fromEntries(involved.map((id, at) => [id, spot(at, involved.length, RADIUS)]));
  const pairs = new Map();
  for (const { left, right, type } of relations) {
    const key = [[left.doc_id, right.doc_id].sort().join(), type].join();
    const known = pairs.get(key) ?? { left: left.doc_id, right: right.doc_id, type, number: 0 };
    pairs.set(key, { ...known, number: known.number + 1 });
  }
  const curves = [...pairs.values()].map(({ left, right, type, number }, at) => {
    const [x0, y0] = place[left];
    const [x1, y1] = place[right];
    const bend = 0.35 + 0.08 * (at % 3); // types between the same two lie apart
    const [cx, cy] = [MIDDLE + ((x0 + x1) / 2 - MIDDLE) * bend, MIDDLE + ((y0 + y1) / 2 - MIDDLE) * bend];
    return svg(
      "path",
      {
        d: `M${x0.toFixed(1)} ${y0.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`,
        class: "tie-line",
        "data-type": type,
        "stroke-width": Math.min(4, 1 + number * 0.6).toFixed(1),
      },
      svg("title", {}, `${labels.get(left)} – ${labels.get(right)}: ${number} × ${type}`),
    );
  });
  const dots = involved.map((id, at) => {
    const [x, y] = place[id];
    const [tx, ty] = spot(at, involved.length, RADIUS + 20);
    return svg(
      "g",
      {},
      svg("title", {}, `${labels.get(id)}: ${titles[id] ?? ""}`),
      svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 5, class: "map-dot" }),
      svg("text", { x: tx.toFixed(1), y: (ty + 4).toFixed(1), "text-anchor": "middle", class: "map-label" }, labels.get(id)),
    );
  });
  return svg(
    "svg",
    {
      viewBox: `0 0 ${SIZE} ${SIZE}`,
      class: involved.length < 6 ? "relation-map few" : "relation-map",
      role: "img",
      "aria-label": `Map of ${plural(relations.length, "relation")} between ${plural(involved.length, "document")}; they are listed below by type`,
    },
    ...curves,
    ...dots,
  );
}

function spot(/** @type {number} */ at, /** @type {number} */ of, /** @type {number} */ radius) {
  const angle = (2 * Math.PI * at) / of - Math.PI / 2;
  return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
}
