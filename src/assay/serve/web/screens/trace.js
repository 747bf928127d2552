// The trace of a run: its record as a timeline that opens to arguments and results. Without a run: the list of them.

import { at, follow, get, post } from "../lib/api.js";
import { chart } from "../runs/chart.js";
import { checkpointView } from "../answers/checkpoint.js";
import { count, dotted, el, fill, money, plural, seconds } from "../lib/dom.js";
import { eventRow } from "../runs/event.js";
import { recheckView } from "../answers/recheck.js";
import { reviewNote } from "../answers/review_status.js";
import { bullets, button, download, failed, icon, spinner } from "../lib/ui.js";
import { gauge } from "../documents/readiness.js";
import { branchNote, rerun } from "../runs/rerun.js";
import { step } from "../lib/paged_list.js";
import { showRuns, standing } from "./runs.js";
import { FAMILY_WORDS, callsOf, spans, stretches, sums } from "../runs/timeline.js";

const GOES_ON = new Set(["parked", "failed", "cancelled"]);
const ROOM = 14; // pixels beside the chart
const DRAW = 250; // milliseconds between drawings while events come in

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  if (!params.run) return showRuns(root, app);
  app.title("Trace");
  const [trace, run] = await Promise.all([get(`${at("api", "runs", params.run)}/trace`), get(at("api", "runs", params.run))]);
  app.title(`Trace: ${run.question}`);
  return traced(root, app, trace, run);
}

function traced(/** @type {HTMLElement} */ root, /** @type {App} */ app, /** @type {TraceResponse} */ trace, /** @type {RunView} */ run) {
  const events = [...trace.events];
  const path = at("api", "runs", run.id);
  const drawn = new Map(); // seq → row
  const mayBranch = run.kind !== "synthesis"; // a question can be done again from any step
  const again = (/** @type {EventView} */ shape) => rerun(app, run, shape.seq, shape.title);
  let stream = /** @type {Stream | null} */ (null);
  let timer = 0;

  const state = el("p", { class: "trace-state" });
  const actions = el("div", { class: "actions" });
  const notes = el("div", { class: "trace-notes" });
  const figures = el("dl", { class: "gauges", "aria-label": "Sums" });
  const strip = el("div", { class: "trace-chart" });
  const list = el("div", { class: "trace", dataset: { off: "" } });
  const filters = el("div", { class: "actions trace-filters", role: "group", "aria-label": "Kinds of events" });
  const search = el("input", { type: "search", placeholder: "Find in the record", "aria-label": "Find in the record" });
  fill(
    root,
    el(
      "div",
      { class: "page trace-page" },
      el(
        "header",
        { class: "trace-head" },
        el("a", { class: "crumb small", href: "#/runs" }, icon("left", 14), "All runs"),
        el("div", { class: "page-head" }, el("h1", { dir: "auto" }, run.question || "(erased)"), actions),
        state,
      ),
      branchNote(run, events[0]),
      recheckView(run.recheck, app),
      notes,
      figures,
      chainOf(trace, run),
      strip,
      el("div", { class: "trace-bar" }, filters, search),
      list,
    ),
  );

  function draw() {
    timer = 0;
    const timed = spans(events);
    const total = Math.max(1, timed.at(-1)?.end ?? 1);
    list.style.setProperty("--total", String(total));
    drawFigures(total);
    drawFilters();
    drawChart(timed, total);
    drawList(timed);
  }

  function drawChart(/** @type {Timed[]} */ timed, /** @type {number} */ total) {
    const width = Math.max(280, strip.clientWidth - 2 * ROOM);
    fill(strip, chart(timed, total, width, open));
  }

  function drawFigures(/** @type {number} */ total) {
    const all = sums(events);
    fill(
      figures,
      run.kind === "synthesis" ? gauge(documentsOf(events), "documents") : gauge(all.rounds, all.rounds === 1 ? "round" : "rounds"),
      gauge(all.calls, all.calls === 1 ? "model call" : "model calls"),
      all.calls ? gauge(`${count(all.tokens_in)} + ${count(all.tokens_out)}`, "tokens in + out") : null,
      all.calls ? gauge(all.money ? money(all.money) : "no charge", "cost") : null,
      gauge(seconds(total / 1000), "at work"),
      gauge(events.length, events.length === 1 ? "event" : "events"),
    );
  }

  function drawFilters() {
    /** @type {Record<string, number>} */
    const counts = {};
    for (const { family } of events) counts[family] = (counts[family] ?? 0) + 1;
    const off = new Set(hiddenFamilies());
    const focused = document.activeElement instanceof HTMLElement && document.activeElement.dataset.family;
    fill(
      filters,
      ...Object.entries(FAMILY_WORDS)
        .filter(([family]) => counts[family])
        .map(([family, words]) => {
          const node = el(
            "button",
            { type: "button", class: "chip family", "aria-pressed": String(!off.has(family)), dataset: { family } },
            el("span", { class: "swatch", "aria-hidden": "true" }),
            `${words} ${count(counts[family])}`,
          );
          node.addEventListener("click", () => {
            if (!off.delete(family)) off.add(family);
            list.dataset.off = [...off].join(" ");
            node.setAttribute("aria-pressed", String(!off.has(family)));
            empty();
          });
          return node;
        }),
    );
    if (focused) filters.querySelector(`[data-family="${focused}"]`)?.focus();
  }

  /** Rows are made once; what comes later is put under its heading. */
  function drawList(/** @type {Timed[]} */ timed) {
    const calls = callsOf(events);
    const sections = stretches(timed);
    sections.forEach((section, place) => {
      let box = list.children[place];
      if (!box) {
        box = el("section", { class: "stretch" }, el("h2", {}, el("span", {}), el("small", { class: "muted figures" })), el("ol", {}));
        list.append(box);
      }
      const [heading, rows] = box.children;
      const [name, sums_] = heading.children;
      name.textContent = section.name;
      sums_.textContent = inShort(section);
      section.events.forEach((each, row) => {
        if (!drawn.has(each.shape.seq)) drawn.set(each.shape.seq, eventRow(each, calls, mayBranch && each.shape.seq > 0 ? again : null));
        const node = drawn.get(each.shape.seq);
        if (rows.children[row] !== node) rows.insertBefore(node, rows.children[row] ?? null);
      });
      while (rows.children.length > section.events.length) rows.lastElementChild?.remove();
    });
    while (list.children.length > sections.length) list.lastElementChild?.remove();
  }

  function open(/** @type {number} */ seq) {
    const row = drawn.get(seq);
    if (!row) return;
    row.firstElementChild.open = true;
    row.scrollIntoView({ block: "center" });
    row.querySelector("summary").focus({ preventScroll: true });
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    for (const { seq, line, kind, title } of events) {
      const row = drawn.get(seq);
      if (row) row.hidden = Boolean(wanted) && !`${kind} ${title} ${line}`.toLowerCase().includes(wanted);
    }
    empty();
  }

  function hiddenFamilies() {
    return (list.dataset.off ?? "").split(" ").filter(Boolean);
  }

  /** A heading with nothing left under it goes too. */
  function empty() {
    const off = hiddenFamilies();
    for (const box of list.querySelectorAll("section")) {
      box.hidden = [...box.querySelectorAll(".event-row")].every((row) => row.hidden || off.includes(row.dataset.family ?? ""));
    }
  }

  // How it stands, and what can be done about it

  function drawState() {
    const links = [];
    if (run.thread) links.push(el("a", { href: `#${at("thread", run.thread)}` }, "Read the answer in its thread"));
    if (run.kind === "synthesis") links.push(el(
      "a",
      { href: `#${at("synthesis", run.id)}` },
      run.state === "delivered" ? "Read the account" : "Watch it",
    ));
    const when = new Date(run.started).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
    fill(
      state,
      standing(run),
      el(
        "span",
        { class: "muted small" },
        [when, run.kind === "synthesis" ? "synthesis" : `${run.mode} mode`, run.models.join(", ") || "no model"].join(" · "),
      ),
      ...links.map((link) => el("span", { class: "small" }, link)),
    );
    fill(
      actions,
      run.state === "running" ? button("Stop", { icon: "stop", on: () => act("cancel") }) : null,
      GOES_ON.has(run.state) ? button("Carry on", { kind: "primary", icon: "right", on: () => act("resume") }) : null,
      run.state === "delivered" ? button("Replay", { icon: "again", on: replay }) : null,
      button("Download", { icon: "download", on: () => download(`trace-${run.id}.json`, `${path}/trace?download=1`) }),
      run.state === "running" ? null : button("Audit bundle", {
        icon: "shield",
        title: "Events, quotations, digests, prompts, costs and decisions, with a proof that can be checked without Assay",
        on: () => download(`run-${run.id}.zip`, `${path}/bundle`),
      }),
    );
    drawTrouble();
  }

  function drawTrouble() {
    notes.querySelector(".trace-trouble")?.remove();
    const now = run.failure
      ? el("p", { class: "note bad" }, icon("warning"), el("span", {}, el("strong", {}, run.failure.error), `: ${run.failure.detail}`))
      : run.waiting
        ? checkpointView(run.waiting, choose)
        : reviewNote(run);
    if (now) notes.prepend(el("div", { class: "trace-trouble" }, now));
  }

  const choose = (/** @type {string} */ choice, /** @type {string} */ words) => act("choice", { choice, words });

  /** Resolves to whether it was done. */
  async function act(/** @type {"cancel" | "resume" | "choice"} */ what, /** @type {ChoiceRequest | undefined} */ body = undefined) {
    return app.attempt(async () => {
      await post(`${path}/${what}`, body);
      Object.assign(run, await get(path));
      drawState();
      listen();
    });
  }

  async function replay() {
    const note = el("div", { class: "note", role: "status" }, spinner(), "Going through it again from the record…");
    notes.querySelector(".trace-replay")?.remove();
    note.classList.add("trace-replay");
    notes.append(note);
    try {
      const result = await post(`${path}/replay`);
      note.classList.add(result.same ? "good" : "bad");
      fill(
        note,
        icon(result.same ? "check" : "warning"),
        result.same
          ? el("span", {}, "Done again from its record, without asking any model: it comes to the same answer.")
          : el(
            "div",
            {},
            el("p", {}, "Done again from its record, it comes to something else:"),
            bullets(result.differences),
          ),
      );
    } catch (problem) {
      note.remove();
      notes.append(failed(problem, replay, "The replay did not work"));
    }
  }

  /** While the run goes on, its events come in here too. */
  function listen() {
    stream?.close();
    if (run.state !== "running") return;
    stream = follow(`${path}/events`, {
      after: events.at(-1)?.seq ?? null,
      event: (_, shape) => {
        events.push(shape);
        timer ||= setTimeout(draw, DRAW);
      },
      end: async () => {
        const [whole, fresh] = await Promise.all([get(path), get(`${path}/trace`)]);
        Object.assign(run, whole);
        root.querySelector(".chain")?.replaceWith(chainOf(fresh, run));
        draw();
        drawState();
        app.announce(`The run has ended: ${run.outcome ?? run.state}`);
      },
    });
  }

  let wide = 0;
  const resized = new ResizeObserver(() => {
    if (Math.abs(strip.clientWidth - wide) < 8) return;
    wide = strip.clientWidth;
    timer ||= setTimeout(draw, DRAW);
  });
  resized.observe(strip);
  search.addEventListener("input", find);
  list.addEventListener("keydown", (event) => {
    if (event.target instanceof Element && event.target.matches(".event > summary")) step(event, [...list.querySelectorAll(".event > summary")].filter((each) => each.offsetParent));
  });
  drawState();
  draw();
  listen();
  return () => {
    resized.disconnect();
    stream?.close();
    clearTimeout(timer);
  };
}

function documentsOf(/** @type {EventView[]} */ events) {
  return events[0]?.event.brief?.documents?.length ?? 0;
}

function inShort(/** @type {Section} */ section) {
  const all = sums(section.events.map(({ shape }) => shape));
  const first = Math.min(...section.events.map((each) => each.start));
  const last = Math.max(...section.events.map((each) => each.end));
  return dotted(
    plural(section.events.length, "event"),
    all.calls ? plural(all.calls, "model call") : "",
    all.calls ? plural(all.tokens_in + all.tokens_out, "token") : "",
    all.money ? money(all.money) : "",
    seconds((last - first) / 1000),
  );
}

/** Whether the record is as it was written. */
function chainOf(/** @type {TraceResponse} */ trace, /** @type {RunView} */ run) {
  if (!trace.faults.length) {
    return el(
      "p",
      { class: "chain small", role: "status" },
      icon("check", 15),
      `The records form one chain${run.state === "running" ? " so far" : ""}: ${plural(trace.chain.length, "entry", "entries")}, each bound to the one before it by its digest.`,
    );
  }
  return el(
    "div",
    { class: "chain note bad", role: "alert" },
    icon("warning"),
    el(
      "div",
      {},
      el("p", {}, el("strong", {}, "This record was changed after it was written.")),
      bullets(trace.faults),
    ),
  );
}
