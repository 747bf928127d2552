// Building the page: elements out of plain values. Strings become text nodes, always; no markup is ever parsed.

const SVG = "http://www.w3.org/2000/svg";
const AS_PROPERTY = new Set(["value", "checked", "indeterminate", "selected", "disabled", "hidden", "open", "multiple"]);
const AS_TARGET = new Set(["href", "src", "action", "formaction", "poster", "data", "xlink:href"]);

/**
 * An element. `props`: class, attributes, `on: {click: fn}`, `dataset: {}`, `style: {}`; what is null or false is left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props<HTMLElementTagNameMap[K]>} props
 * @param {Child[]} children
 */
export function el(tag, props = {}, ...children) {
  return dressed(document.createElement(tag), props, children);
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props<SVGElementTagNameMap[K]>} props
 * @param {Child[]} children
 */
export function svg(tag, props = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), props, children);
}

/** @type {<E extends Element>(node: E, ...children: Child[]) => E} */
export function fill(node, ...children) {
  node.replaceChildren(...nodes(children));
  return node;
}

/** @type {<E extends Element>(node: E, ...children: Child[]) => E} */
export function add(node, ...children) {
  node.append(...nodes(children));
  return node;
}

/** @type {<E extends HTMLElement | SVGElement>(node: E, props: Props<E>, children: Child[]) => E} */
function dressed(node, props, children) {
  for (const [name, value] of Object.entries(props)) dress(node, name, value);
  return add(node, children);
}

function dress(/** @type {any} */ node, /** @type {string} */ name, /** @type {any} */ value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [kind, heard] of Object.entries(value)) if (heard) node.addEventListener(kind, heard);
  } else if (name === "dataset") {
    for (const [key, each] of Object.entries(value)) if (each !== null && each !== undefined) node.dataset[key] = each;
  } else if (name === "style") {
    for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each); // allowed by the policy; an attribute is not
  } else if (name === "class") {
    const names = Array.isArray(value) ? value.filter(Boolean).join(" ") : value;
    if (names) node.setAttribute("class", names);
  } else if (AS_PROPERTY.has(name) && name in node) {
    node[name] = value;
  } else {
    if (/^on/i.test(name) || name === "srcdoc") throw new Error(`${name} is never set as an attribute`);
    if (AS_TARGET.has(name) && !ours(String(value))) throw new Error(`${name} may only lead to this server`);
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Whether an address stays here: a path of this server, a place on this page, or something that this page has made. */
function ours(/** @type {string} */ address) {
  return /^(#|\/(?![/\\])|blob:|data:image\/png;)/.test(address);
}

/** @type {(children: Child[]) => Node[]} */
function nodes(children) {
  return /** @type {any[]} */ (children)
    .flat(Infinity)
    .filter((each) => each !== null && each !== undefined && each !== false)
    .map((each) => (each instanceof Node ? each : document.createTextNode(String(each))));
}

// Words for figures

export function plural(/** @type {number} */ count, /** @type {string} */ noun, many = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : many}`;
}

export function ago(/** @type {string} */ iso) {
  const then = new Date(iso);
  if (Number.isNaN(then.getTime())) return "";
  const gone = (Date.now() - then.getTime()) / 1000;
  if (gone < 45) return "just now";
  if (gone < 3600) return `${plural(Math.max(1, Math.round(gone / 60)), "minute")} ago`;
  if (gone < 86400) return `${plural(Math.round(gone / 3600), "hour")} ago`;
  if (gone < 86400 * 7) return `${plural(Math.round(gone / 86400), "day")} ago`;
  return then.toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

export function bytes(/** @type {number} */ count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let size = count;
  let unit = -1;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function seconds(/** @type {number | null | undefined} */ count) {
  if (count === null || count === undefined) return "";
  if (count < 10) return `${count.toFixed(1)} s`;
  if (count < 60) return `${Math.round(count)} s`;
  const whole = Math.round(count);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

/** Dollars as people write them: $1,234.50, $0.42, less than a cent with as many digits as it needs. */
export function money(/** @type {number} */ amount) {
  if (amount && Math.abs(amount) < 0.01) return `$${Number(amount.toPrecision(2))}`;
  return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** A share as per cent: 100 %, 12.5 %, 0.04 %. */
export function percent(/** @type {number} */ share) {
  const value = 100 * share;
  return `${value === 0 || Math.abs(value) >= 10 ? Number(value.toFixed(1)) : Number(value.toPrecision(2))} %`;
}

export function count(/** @type {number | string} */ number) {
  return Number(number).toLocaleString("en");
}

/** What there is of these, with dots between. */
export function dotted(/** @type {unknown[]} */ ...parts) {
  return parts.filter(Boolean).join(" · ");
}

/** Words on one line. */
export function oneLine(/** @type {string | null | undefined} */ words) {
  return String(words ?? "").split(/\s+/).filter(Boolean).join(" ");
}
