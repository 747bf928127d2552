// One event of a run as a line with a bar to scale, which opens to what was asked, what came back, and who made it.

import { count, dotted, el, money, plural, seconds } from "../lib/dom.js";
import { facts, named } from "./facts.js";
import { button, note } from "../lib/ui.js";
import { isWithheld } from "./timeline.js";

/** The line; what is inside is only made when it is opened. `again(shape)`, where given, does the run anew from there. */
export function eventRow(/** @type {Timed} */ { shape, start, end, waited }, /** @type {Map<string, any>} */ calls, /** @type {((shape: EventView) => unknown) | null} */ again = null) {
  const summary = el(
    "summary",
    {},
    el("span", { class: "event-seq figures", "aria-hidden": "true" }, String(shape.seq)),
    el("span", { class: "event-kind" }, shape.title),
    el("span", { class: "event-line", dir: "auto" }, line(shape, calls)),
    el("span", { class: "event-figures figures" }, figures(shape, end - start)),
    el("span", { class: "event-track", "aria-hidden": "true" }, el("span", { class: "event-bar" })),
  );
  const details = el("details", { class: "event" }, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(inside(shape, calls, again));
  });
  const row = el(
    "li",
    {
      class: ["event-row", isWithheld(shape) && "withheld"],
      dataset: { family: shape.family, seq: String(shape.seq) },
      style: { "--start": String(start), "--end": String(end) },
    },
    details,
  );
  if (waited > 1000) row.dataset.waited = `waited ${seconds(waited / 1000)}`;
  return row;
}

function line(/** @type {EventView} */ shape, /** @type {Map<string, any>} */ calls) {
  const { kind, event } = shape;
  if (isWithheld(shape)) return `Not shown: ${shape.line}`;
  if (kind === "ModelReplied") {
    const asked = event.prompt && event.prompt !== event.role ? `${event.role}, ${event.prompt}` : event.role;
    return `${asked} · ${event.model}`;
  }
  if (kind === "ToolRan") {
    const call = calls.get(event.call);
    const about = call ? (call.arguments.query ?? call.arguments.name ?? call.arguments.source ?? call.tool) : event.call;
    return event.error ? `${about}: ${event.error}` : `${about}: ${plural(event.found.length, "passage")}`;
  }
  return titled(shape);
}

/** The line with titles in the place of ids; of a document that is described, its title follows by itself. */
function titled(/** @type {EventView} */ { line: words, documents, kind }) {
  let text = words;
  for (const [id, title] of Object.entries(documents)) {
    if (kind === "Described" && text.startsWith(`${id} · `)) text = text.slice(id.length + 3);
    text = text.replaceAll(id, title);
  }
  return text;
}

function figures(/** @type {EventView} */ shape, /** @type {number} */ took) {
  const { kind, event } = shape;
  if (isWithheld(shape)) return "";
  if (kind !== "ModelReplied") return took >= 50 ? seconds(took / 1000) : "";
  const usage = event.usage ?? {};
  return dotted(
    `${count((usage.tokens_in ?? 0) + (usage.tokens_out ?? 0))} tok`,
    usage.money ? money(usage.money) : "",
    seconds(usage.seconds ?? 0),
  );
}

/** The event's fields, in the order in which they are best read. */
function inside(/** @type {EventView} */ shape, /** @type {Map<string, any>} */ calls, /** @type {((shape: EventView) => unknown) | null} */ again) {
  const { kind, event, documents } = shape;
  const parts = [];
  const call = kind === "ToolRan" ? calls.get(event.call) : null;
  if (call) parts.push(part("Arguments", named({ tool: call.tool, ...call.arguments }, documents)));
  if (isWithheld(shape)) {
    parts.push(note("", "lock", `What stood here is not shown. ${shape.line} The record still links its digest, so that it can be verified.`));
  } else if (kind === "ModelReplied") {
    const { text, calls: made, usage, ...rest } = event;
    if (text) parts.push(part("What came back", facts(text, documents)));
    if (made?.length) parts.push(part("Tool calls", facts(made, documents)));
    parts.push(part("Spent", facts(usage ?? {}, documents)), part("How it was asked", named(rest, documents)));
  } else if (kind === "ToolRan") parts.push(part("Results", named(event, documents, 0, ["call"])));
  else parts.push(named(placed(event, shape.pages), documents));
  parts.push(el(
    "div",
    { class: "event-foot actions" },
    el("p", { class: "small muted figures" }, `Event ${shape.seq}, ${kind}, at ${shape.at}`),
    again ? button("Re-run from here", { kind: "small", icon: "branch", on: () => again(shape) }) : null,
  ));
  return el("div", { class: "event-inside" }, ...parts);
}

/** The event with the page of each quotation that it keeps. */
function placed(/** @type {Record<string, any>} */ event, /** @type {Record<string, number>} */ pages) {
  if (!event.evidence) return event;
  const evidence = /** @type {Recorded["Evidence"][]} */ (event.evidence).map((each) => ({ ...each, quote: { ...each.quote, page: pages[each.key] } }));
  return { ...event, evidence };
}

function part(/** @type {string} */ title, /** @type {Child} */ content) {
  return el("section", {}, el("h3", {}, title), content);
}
