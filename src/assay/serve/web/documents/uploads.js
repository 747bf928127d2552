// Files on their way into a knowledge base: sent in batches, two at a time, then watched while the server reads them.
// It belongs to the page and not to a screen: it goes on wherever the person looks meanwhile.

import { at, follow, get, post, upload } from "../lib/api.js";

const FILES = 20; // in a request
const BYTES = 32_000_000; // in a request, unless one file alone is larger
const AT_ONCE = 2; // requests; a browser has six lines to a server, and the rest of the page needs some
const TRIES = 6;
const SENT = 0.2; // of the work on a file, once it has left the browser
const LOOK = 2500; // milliseconds between looks at jobs that are not followed
const BESIDE = 4; // jobs that are looked at beside the one that is followed
const ENDED = new Set(["done", "failed", "cancelled"]);
const OVER = new Set(["ready", "unreadable", "failed", "cancelled"]);

const items = /** @type {Item[]} */ ([]); // every file of this visit, until it is cleared
const queue = /** @type {Item[]} */ ([]); // those that have not been sent
/** @type {Map<string, { job: JobView; items: Item[] }>} */
const jobs = new Map(); // items is empty for jobs of earlier visits
/** @type {Set<Upload>} */
const requests = new Set();
/** @type {Set<(now: Standing) => void>} */
const watchers = new Set();
/** @type {Set<(now: Standing) => void>} */
const enders = new Set();
let began = 0;
let least = Infinity; // seconds left, as they were told last: they do not grow unless files are added
let bytesSent = 0;
let following = /** @type {{ id: string; stream: Stream } | null} */ (null);
let looking = 0;
let notifyTimer = 0;
let settled = true;

/** Hear of changes, a few times a second at most. Returns how to stop hearing. */
export function watch(/** @type {(now: Standing) => void} */ changed) {
  watchers.add(changed);
  return () => watchers.delete(changed);
}

/** Hear when everything has ended. */
export function whenOver(/** @type {(now: Standing) => void} */ ended) {
  enders.add(ended);
  return () => enders.delete(ended);
}

/** Put files on their way. What is larger than the server reads is refused here, before it is sent. */
export function send(/** @type {Chosen[]} */ files, /** @type {string} */ base, /** @type {number} */ megabytes) {
  if (settled) {
    began = performance.now();
    bytesSent = 0;
  }
  settled = false;
  least = Infinity;
  for (const { file, path } of files) {
    /** @type {Item} */
    const item = { base, path, file, bytes: file.size, state: "queued", fraction: 0, why: "", note: "", pages: 0, tries: 0 };
    items.push(item);
    if (megabytes && file.size > megabytes * 1_000_000) {
      over(item, "unreadable", `It is larger than ${megabytes} MB, the most that is read. Split it, or raise the setting file_max_megabytes.`);
    } else queue.push(item);
  }
  pump();
  changed();
}

/** Jobs that an earlier visit began and that still run. */
export async function takeUp() {
  for (const job of await get("/api/jobs")) {
    if (!jobs.has(job.id) && !ENDED.has(job.state)) {
      jobs.set(job.id, { job, items: [] });
      settled = false;
    }
  }
  attend();
  changed();
}

/** Stop all of it: what is read already stays. */
export async function cancel() {
  for (const item of queue.splice(0)) over(item, "cancelled", "");
  for (const request of requests) request.abort();
  await Promise.all(under().map(({ job }) => cancelJob(job.id)));
  changed();
}

export async function cancelJob(/** @type {string} */ id) {
  absorb(await post(`${at("api", "jobs", id)}/cancel`));
}

/** Forget what has ended. */
export function tidy() {
  const left = items.filter((item) => !OVER.has(item.state));
  items.splice(0, items.length, ...left);
  for (const [id, { job }] of jobs) if (ENDED.has(job.state)) jobs.delete(id);
  changed();
}

/** Send again what could not be sent. */
export function retry() {
  for (const item of items) {
    if (item.state !== "failed" || !item.file) continue;
    Object.assign(item, { state: "queued", why: "", tries: 0, fraction: 0 });
    queue.push(item);
    settled = false;
  }
  pump();
  changed();
}

/** How it stands: the files of this visit, the jobs of earlier ones, and the sums. */
export function standing() {
  const count = { queued: 0, sending: 0, waiting: 0, reading: 0, ready: 0, unreadable: 0, failed: 0, cancelled: 0 };
  let bytes = 0;
  for (const item of items) {
    count[item.state] += 1;
    bytes += item.bytes;
  }
  const done = items.filter((item) => OVER.has(item.state)).length;
  const earlier = [...jobs.values()].filter((each) => !each.items.length && !ENDED.has(each.job.state)).map(({ job }) => job);
  const pages = items.reduce((sum, item) => sum + item.pages, 0);
  return { items, count, bytes, pages, done, earlier, ...pace(), busy: done < items.length || earlier.length > 0 };
}

/** The part of the work that is done, bytes a second while something is sent, and seconds that are left, as far as that can be told. */
function pace() {
  const seconds = (performance.now() - began) / 1000;
  const unsent = items.some((item) => item.state === "queued" || item.state === "sending");
  const all = items.reduce((sum, item) => sum + weight(item), 0);
  const part = all ? items.reduce((sum, item) => sum + weight(item) * (OVER.has(item.state) ? 1 : SENT * item.fraction), 0) / all : 0;
  const left = seconds > 3 && part > 0.05 ? (seconds * (1 - part)) / part : Infinity;
  least = Math.min(least, left);
  const tells = part < 1 && left < 3 * least; // who was wrong by more than that says nothing
  return { part, rate: unsent && seconds > 1 ? bytesSent / seconds : 0, left: tells ? least : null };
}

/** What a file costs beside another: its size, and something for every file. */
function weight(/** @type {Item} */ item) {
  return item.bytes + 20_000;
}

// Sending

function pump() {
  while (requests.size < AT_ONCE && queue.length) transmit(batch());
}

function batch() {
  const base = queue[0].base;
  const taken = [];
  let bytes = 0;
  while (queue.length && taken.length < FILES && queue[0].base === base) {
    if (taken.length && (bytes + queue[0].bytes > BYTES || queue[0].tries > 1)) break; // what failed twice goes alone
    bytes += queue[0].bytes;
    taken.push(...queue.splice(0, 1));
    if (taken[0].tries > 1) break;
  }
  return taken;
}

async function transmit(/** @type {Item[]} */ taken) {
  const form = new FormData();
  for (const item of taken) {
    Object.assign(item, { state: "sending", fraction: 0, tries: item.tries + 1 });
    form.append("files", /** @type {File} */ (item.file), item.path);
  }
  const whole = taken.reduce((sum, item) => sum + item.bytes, 0);
  let before = 0;
  const request = upload(`${at("api", "bases", taken[0].base)}/documents`, form, (fraction) => {
    bytesSent += Math.max(0, fraction * whole - before);
    before = fraction * whole;
    share(taken, before);
    changed();
  });
  requests.add(request);
  try {
    const job = await request.done;
    bytesSent += Math.max(0, whole - before);
    for (const item of taken) Object.assign(item, { state: "waiting", fraction: 1, job: job.id });
    jobs.set(job.id, { job, items: taken });
    absorb(job);
  } catch (problem) {
    refused(taken, problem);
  } finally {
    requests.delete(request);
    pump();
    attend();
    changed();
  }
}

/** A batch goes out as one stream, file after file: how much of each has left. */
function share(/** @type {Item[]} */ taken, /** @type {number} */ sent) {
  let start = 0;
  for (const item of taken) {
    item.fraction = item.bytes ? Math.min(1, Math.max(0, (sent - start) / item.bytes)) : 1;
    start += item.bytes;
  }
}

/** A batch that was not taken: tried again where that may help, in pieces where it was too much. */
function refused(/** @type {Item[]} */ taken, /** @type {any} */ problem) {
  const status = problem.status ?? 0;
  if (problem.error === "stopped") {
    for (const item of taken) over(item, "cancelled", "");
    return;
  }
  const passing = [0, 429, 502, 503, 504].includes(status);
  for (const item of taken) {
    if ((passing && item.tries < TRIES) || (status === 413 && taken.length > 1)) {
      item.state = "queued";
      item.tries = status === 413 ? 2 : item.tries;
      later(item, passing ? 1000 * (problem.wait || Math.min(30, 2 ** item.tries)) : 0);
    } else over(item, status === 413 ? "unreadable" : "failed", problem.message);
  }
}

function later(/** @type {Item} */ item, /** @type {number} */ wait) {
  setTimeout(() => {
    if (item.state !== "queued") return; // it was cancelled meanwhile
    queue.push(item);
    pump();
  }, wait);
}

function over(/** @type {Item} */ item, /** @type {ItemState} */ state, /** @type {string} */ why) {
  Object.assign(item, { state, why });
  if (state !== "failed") item.file = null; // its bytes are not needed any more
}

// Watching what the server does with them

function under() {
  return [...jobs.values()].filter(({ job }) => !ENDED.has(job.state));
}

/** Follow the job that is at work; look at the next ones now and then. */
function attend() {
  const open = under();
  const first = open.find(({ job }) => job.state === "running") ?? open[0];
  if (following && following.id !== first?.job.id && ENDED.has(jobs.get(following.id)?.job.state ?? "done")) {
    following.stream.close();
    following = null;
  }
  if (first && !following) {
    const id = first.job.id;
    const stream = follow(`${at("api", "jobs", id)}/events`, { kinds: ["job"], event: (_, data) => absorb(data) });
    following = { id, stream };
  }
  if (!looking && open.length > 1) looking = setTimeout(look, LOOK);
}

async function look() {
  const open = under().filter(({ job }) => job.id !== following?.id);
  await Promise.allSettled(open.slice(0, BESIDE).map(async ({ job }) => absorb(await get(at("api", "jobs", job.id)))));
  looking = 0;
  attend();
}

/** What a job says of its files. */
function absorb(/** @type {JobView} */ job) {
  const known = jobs.get(job.id);
  if (!known) return;
  if (known.job.left !== null && job.left !== null && job.files === known.job.files) job.left = Math.min(job.left, known.job.left);
  known.job = job;
  if (!known.items.length && ENDED.has(job.state)) setTimeout(() => takeUp().catch(() => {}), LOOK); // there may be more than were listed
  const reports = new Map(job.reports.map((report) => [report.name, report]));
  known.items.forEach((item, place) => {
    if (OVER.has(item.state)) return;
    const report = reports.get(item.path) ?? (job.reports.length === known.items.length ? job.reports[place] : undefined);
    if (report?.outcome) {
      const failed = report.outcome === "failed";
      over(item, failed ? "unreadable" : "ready", report.why);
      Object.assign(item, { note: NOTES[report.outcome] ?? "", pages: report.pages });
    } else if (job.state === "running") item.state = report?.status === "reading" ? "reading" : "waiting";
    else if (ENDED.has(job.state)) over(item, job.state === "cancelled" ? "cancelled" : "failed", job.error);
  });
  attend();
  changed();
}

/** @type {Words} */
const NOTES = {
  replaced: "replaces the older version",
  unchanged: "was there already",
  moved: "was there already, under another name",
  duplicate: "same content as another file; kept once",
};

function changed() {
  if (notifyTimer) return;
  notifyTimer = setTimeout(() => {
    notifyTimer = 0;
    const now = standing();
    for (const each of watchers) each(now);
    if (!now.busy && !settled) {
      settled = true;
      for (const each of enders) each(now);
    }
  }, 120);
}

// What has not left the browser is lost when the page is closed; what has left it is not.
globalThis.addEventListener?.("beforeunload", (event) => {
  if (items.some((item) => item.state === "queued" || item.state === "sending")) event.preventDefault();
});
