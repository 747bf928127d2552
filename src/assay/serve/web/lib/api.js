// The one way to the server: the public API, JSON in and out, and the streams. Knows nothing about screens.

export class Problem extends Error {
  constructor(/** @type {number} */ status, /** @type {string} */ error, /** @type {string} */ detail, wait = 0) {
    super(detail);
    this.status = status;
    this.error = error;
    this.wait = wait; // seconds to wait, where the server says so
  }
}

/** The CSRF token, the kinds of events a run can have (both from `/api/me`), and what to do when a sign-in is needed. Set by app.js. */
export const session = { csrf: "", eventKinds: /** @type {string[]} */ ([]), signedOut: () => {} };

export const get = /** @type {Call<"GET">} */ ((path) => call("GET", path));
export const post = /** @type {Call<"POST">} */ ((path, body) => call("POST", path, body));
export const patch = /** @type {Call<"PATCH">} */ ((path, body) => call("PATCH", path, body));
export const put = /** @type {Call<"PUT">} */ ((path, body) => call("PUT", path, body));
export const del = /** @type {Call<"DELETE">} */ ((path) => call("DELETE", path));

/**
 * A path out of parts that may hold anything: `at("api", "threads", id)`.
 * @template {string[]} const T
 * @param {T} parts
 * @returns {Joined<T>}
 */
export function at(...parts) {
  return /** @type {any} */ (`/${parts.map((part) => encodeURIComponent(part)).join("/")}`);
}

/**
 * A path with its query; what is empty is left out, a list is repeated.
 * @template {string} const P
 * @param {P} path
 * @param {Record<string, unknown>} values
 * @returns {P} of the type of the path alone
 */
export function query(path, values) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== "" && each !== null && each !== undefined && each !== false) given.append(name, String(each));
    }
  }
  const words = given.toString();
  return /** @type {P} */ (words ? `${path}?${words}` : path);
}

async function call(/** @type {Method} */ method, /** @type {string} */ path, /** @type {unknown} */ body = undefined) {
  /** @type {Words} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.csrf) headers["X-CSRF-Token"] = session.csrf;
  let reply;
  try {
    reply = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch {
    throw new Problem(
      0,
      "unreachable",
      "The server cannot be reached. Is it running? This page tries again when you do.",
    );
  }
  if (reply.status === 204) return null;
  const words = await reply.text();
  if (reply.ok) {
    const kind = reply.headers.get("Content-Type") ?? "";
    return kind.includes("json") ? JSON.parse(words) : words;
  }
  throw problemOf(reply.status, words, reply.headers.get("Retry-After"), path);
}

function problemOf(/** @type {number} */ status, /** @type {string} */ words, /** @type {string | null} */ wait, /** @type {string} */ path) {
  let problem = /** @type {any} */ ({});
  try {
    problem = JSON.parse(words);
  } catch {
    // not ours: a proxy's page, or nothing
  }
  const detail = typeof problem.detail === "string" && problem.detail ? problem.detail : `The server answered with ${status}.`;
  if (status === 401 && path !== "/api/session") session.signedOut();
  return new Problem(status, problem.error ?? "http", detail, Number(wait) || 0);
}

/** Send files. `onProgress` gets the fraction sent; `done` is what the server says of it. */
export function upload(/** @type {string} */ path, /** @type {FormData} */ form, /** @type {(fraction: number) => void} */ onProgress) {
  const sent = new XMLHttpRequest();
  /** @type {Promise<JobView>} */
  const done = new Promise((resolve, reject) => {
    sent.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    sent.addEventListener("load", () => {
      if (sent.status >= 200 && sent.status < 300) resolve(sent.responseText ? JSON.parse(sent.responseText) : null);
      else reject(problemOf(sent.status, sent.responseText, sent.getResponseHeader("Retry-After"), path));
    });
    sent.addEventListener(
      "error",
      () => reject(new Problem(0, "unreachable", "The connection was lost while the files were sent.")),
    );
    sent.addEventListener("abort", () => reject(new Problem(0, "stopped", "Stopped.")));
    sent.open("POST", path);
    sent.setRequestHeader("Accept", "application/json");
    if (session.csrf) sent.setRequestHeader("X-CSRF-Token", session.csrf);
    sent.send(form);
  });
  return { done, abort: () => sent.abort() };
}

/**
 * Follow a stream until it ends: each event once, in order, across lost connections.
 * `event(kind, data)`, `end(data)`, `parked()` (the server closes; it is tried again), `broken()` and `back()` tell of the
 * connection. `after` is the last event that is known already.
 */
export function follow(/** @type {string} */ path, /** @type {Followed} */ { kinds = session.eventKinds, after = null, event, statements, retrying, end, broken, back, parked }) {
  let source = /** @type {EventSource | null} */ (null);
  let last = after;
  let closed = false;
  let lost = false;
  let timer = 0;
  let pause = 1000;

  const close = () => {
    closed = true;
    clearTimeout(timer);
    source?.close();
  };

  const heard = (/** @type {string} */ kind) => (/** @type {MessageEvent} */ message) => {
    const seq = message.lastEventId === "" ? null : Number(message.lastEventId);
    if (seq !== null && last !== null && seq <= last) return; // known already
    if (seq !== null) last = seq;
    event?.(kind, JSON.parse(message.data));
  };

  const lose = () => {
    if (!lost) broken?.();
    lost = true;
  };

  const open = () => {
    if (closed) return;
    source = new EventSource(query(path, { after: last }));
    source.addEventListener("open", () => {
      pause = 1000;
      if (lost) back?.();
      lost = false;
    });
    for (const kind of kinds) source.addEventListener(kind, heard(kind));
    source.addEventListener("statements", (message) => statements?.(JSON.parse(message.data).statements));
    source.addEventListener("retrying", (message) => retrying?.(JSON.parse(message.data).line));
    source.addEventListener("end", (message) => {
      close();
      end?.(message.data ? JSON.parse(message.data) : {});
    });
    source.addEventListener("parked", () => {
      parked?.();
      lost = true; // so that it is told when the server is back
      again();
    });
    source.addEventListener("error", () => {
      if (closed) return;
      lose();
      if (source?.readyState !== EventSource.CLOSED) return;
      get("/api/me").catch(() => {}); // refused: perhaps one has to sign in again
      again(); // and the browser does not try again by itself
    });
  };

  const again = () => {
    source?.close();
    clearTimeout(timer);
    timer = setTimeout(open, pause);
    pause = Math.min(pause * 2, 15000);
  };

  open();
  return { close };
}
