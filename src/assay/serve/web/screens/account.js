// One synthesis: watched while it is made, read when it is done.

import { at, follow, get, post } from "../lib/api.js";
import { add, el, fill, money, plural, seconds } from "../lib/dom.js";
import { showDelivered } from "../runs/finished_account.js";
import { awaitingReviewView, rejectedView, withheldView } from "../answers/review_status.js";
import { button, empty, icon } from "../lib/ui.js";
import { gauge } from "../documents/readiness.js";
import { IDLE, begun, documentsOf, grow, stagesOf } from "../runs/stages.js";
import { standing } from "./runs.js";

const DRAW = 200; // milliseconds between drawings
const LEVELS = ["not looked at yet", "described", "quoted", "with insights"];
const SIGNS = ["·", "○", "◐", "●"];
const GOES_ON = new Set(["parked", "failed", "cancelled", "waiting"]);
const FEW = 60; // documents that have a line of their own

export async function showAccount(/** @type {HTMLElement} */ root, /** @type {string} */ id, /** @type {App} */ app) {
  const run = await get(at("api", "runs", id));
  if (run.kind !== "synthesis") {
    fill(
      root,
      empty(
        "This run is a question",
        "It has a trace and an answer, and no account.",
        el("a", { class: "button", href: `#${at("run", id)}` }, "See its trace"),
      ),
    );
    return undefined;
  }
  app.title(`Synthesis: ${run.question}`);
  if (run.state === "delivered" && run.withheld) {
    fill(root, el("div", { class: "page" }, el("h1", { dir: "auto" }, run.question), withheldView(run)));
    return undefined;
  }
  return run.state === "delivered" ? showDelivered(root, run, app) : watching(root, run, app);
}

function watching(/** @type {HTMLElement} */ root, /** @type {RunView} */ run, /** @type {App} */ app) {
  const path = at("api", "runs", run.id);
  const so = begun();
  const state = el("p", { class: "trace-state" });
  const actions = el("div", { class: "actions" });
  const trouble = el("div", {});
  const figures = el("dl", { class: "gauges", "aria-label": "So far" });
  const way = el("ol", { class: "way", "aria-label": "Stages" });
  const documents = el("section", { class: "way-documents", "aria-label": "Documents" });
  const related = el("section", { class: "way-relations", "aria-label": "Relations found so far" });
  let stream = /** @type {Stream | null} */ (null);
  let timer = 0;
  let clock = 0;
  let announced = "";
  let seen = /** @type {number | null} */ (null); // the last event that was taken in

  fill(
    root,
    el(
      "div",
      { class: "page watching" },
      el(
        "header",
        { class: "trace-head" },
        el("a", { class: "crumb small", href: "#/synthesis" }, icon("left", 14), "Synthesis"),
        el("div", { class: "page-head" }, el("h1", { dir: "auto" }, run.question), actions),
        state,
      ),
      trouble,
      figures,
      el("div", { class: "watching-columns" }, way, el("div", { class: "watching-side" }, related, documents)),
    ),
  );

  function draw() {
    timer = 0;
    drawFigures();
    way.dataset.running = String(run.state === "running");
    const stages = stagesOf(so);
    fill(way, ...stages.map(stageRow));
    drawDocuments(documents, documentsOf(so));
    drawRelations(related, so);
    const now = stages.find((stage) => stage.state === "now")?.name ?? "";
    if (now && now !== announced) app.announce(`${now}…`);
    announced = now;
  }

  function drawFigures() {
    const { calls, tokens_in, tokens_out, money: spent } = so.usage;
    const since = run.state === "running" && so.last !== null ? Math.max(0, Date.now() - so.last) : 0;
    fill(
      figures,
      gauge(seconds((so.active + (since < IDLE ? since : 0)) / 1000), "at work"),
      gauge(calls, calls === 1 ? "model call" : "model calls"),
      calls ? gauge(tokens_in + tokens_out, "tokens") : null,
      calls ? gauge(spent ? money(spent) : "no charge", "cost") : null,
      gauge(so.evidence.size, so.evidence.size === 1 ? "quotation" : "quotations"),
    );
  }

  function drawState() {
    fill(
      state,
      standing(run),
      el("span", { class: "small muted" }, run.models.join(", ") || "no model: quotations, chosen by rule"),
      el("a", { class: "small", href: `#${at("run", run.id)}` }, "Its trace"),
    );
    fill(
      actions,
      run.state === "running" ? button("Stop", { icon: "stop", on: () => act("cancel") }) : null,
      GOES_ON.has(run.state) ? button("Carry on", { kind: "primary", icon: "right", on: () => act("resume") }) : null,
    );
    fill(
      trouble,
      run.failure && run.state === "failed" ? el(
        "p",
        { class: "note bad", role: "alert" },
        icon("warning"),
        el("span", {}, `${run.failure.detail} What is done is kept.`),
      ) : null,
    );
    if (run.state === "held") add(trouble, awaitingReviewView(run));
    if (run.state === "rejected") add(trouble, rejectedView(run));
    if (run.state === "parked") add(trouble, el("p", { class: "note" }, icon("info"), "It was cut off in the middle. Nothing is lost: it can be carried on."));
    if (run.state === "cancelled") add(trouble, el("p", { class: "note" }, icon("info"), "It was stopped. What is done is kept, and it can be carried on."));
  }

  async function act(/** @type {"cancel" | "resume"} */ what) {
    await app.attempt(async () => {
      await post(`${path}/${what}`);
      Object.assign(run, await get(path));
      drawState();
      draw();
      if (run.state === "running") listen();
    });
  }

  function listen() {
    stream?.close();
    stream = follow(`${path}/events`, {
      after: seen,
      event: (_, shape) => {
        grow(so, shape);
        seen = shape.seq;
        timer ||= setTimeout(draw, DRAW);
      },
      end: async () => {
        Object.assign(run, await get(path));
        if (run.state === "delivered") {
          stop();
          app.announce("The account is ready.");
          await showDelivered(root, run, app);
        } else {
          draw();
          drawState();
          app.announce("It is not running now.");
        }
      },
      parked: () => app.announce("The server is closing; the synthesis will be carried on."),
    });
  }

  function stop() {
    stream?.close();
    clearTimeout(timer);
    clearInterval(clock);
  }

  drawState();
  draw();
  listen();
  clock = setInterval(drawFigures, 1000);
  return stop;
}

function stageRow(/** @type {Stage} */ stage) {
  const words = { done: "done", now: "under way", later: "to come" }[stage.state];
  return el(
    "li",
    { class: "way-stage", dataset: { state: stage.state }, "aria-current": stage.state === "now" ? "step" : null },
    el("span", { class: "way-sign" }, stage.state === "done" ? icon("check", 14) : null, el("span", { class: "visually-hidden" }, words)),
    el(
      "div",
      {},
      el("h2", {}, stage.name),
      stage.far ? el("p", { class: "small muted figures", dir: "auto" }, stage.far) : null,
      stage.state === "now" ? bar(stage.done, stage.name) : null,
    ),
  );
}

function bar(/** @type {number} */ done, /** @type {string} */ name) {
  return el("progress", { max: "1", value: String(done), "aria-label": name });
}

function drawDocuments(/** @type {HTMLElement} */ holder, /** @type {ReturnType<typeof documentsOf>} */ documents) {
  if (!documents.length) return;
  const heading = [
    el("h2", {}, "Documents"),
    el(
      "p",
      { class: "small muted way-legend", "aria-hidden": "true" },
      LEVELS.slice(1).map((words, level) => `${SIGNS[level + 1]} ${words}`).join("   "),
    ),
  ];
  if (documents.length > FEW) {
    const counts = LEVELS.map((words, level) => [words, documents.filter((each) => each.level === level).length]).filter(([, number]) => number);
    fill(
      holder,
      ...heading,
      el("p", { class: "way-signs", "aria-hidden": "true" }, documents.map((each) => SIGNS[each.level]).join("")),
      el("p", { class: "small muted" }, counts.map(([words, number]) => `${number} ${words}`).join(" · ")),
    );
    return;
  }
  fill(
    holder,
    ...heading,
    el(
      "ul",
      { class: "way-list" },
      ...documents.map((each) =>
        el(
          "li",
          { dataset: { level: String(each.level) } },
          el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[each.level]),
          el("span", { class: "doc-label" }, each.label),
          el("span", { dir: "auto" }, each.title || "…"),
          el("span", { class: each.quotations ? "small muted figures" : "visually-hidden" }, found(each)),
        ),
      ),
    ),
  );
}

function found(/** @type {ReturnType<typeof documentsOf>[number]} */ { quotations, insights, level }) {
  if (insights) return `${plural(quotations, "quotation")}, ${plural(insights, "insight")}`;
  return quotations ? plural(quotations, "quotation") : LEVELS[level];
}

function drawRelations(/** @type {HTMLElement} */ holder, /** @type {SynthesisSoFar} */ so) {
  if (!so.relations.length) return;
  const labels = new Map((so.brief?.documents ?? []).map((id, place) => [id, `D${place + 1}`]));
  const latest = [...so.relations].reverse().sort((a, b) => Number(b.type === "contradiction") - Number(a.type === "contradiction"));
  fill(
    holder,
    el("h2", {}, plural(so.relations.length, "relation")),
    el(
      "ul",
      { class: "way-list" },
      ...latest.slice(0, 6).map((each) => el(
        "li",
        {},
        el("span", { class: "tie", dataset: { type: each.type } }, each.type),
        el("span", { class: "doc-label" }, `${labels.get(each.left.doc_id)} – ${labels.get(each.right.doc_id)}`),
        el("span", { class: "small", dir: "auto" }, each.reason),
      )),
    ),
  );
}
