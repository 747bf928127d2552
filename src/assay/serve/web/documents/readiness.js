// What of a knowledge base can be asked about, what cannot, and what to do about that.

import { at, get } from "../lib/api.js";
import { count, el, fill, plural } from "../lib/dom.js";

const NAMES = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

/** The report of one base. `refresh` reads it again. */
export function readiness(/** @type {HTMLElement} */ holder, /** @type {string} */ base) {
  let opened = false; // as the person left it

  async function refresh() {
    try {
      const report = await get(`${at("api", "bases", base)}/readiness`);
      opened = holder.querySelector("details")?.open ?? opened;
      fill(holder, drawn(report, opened));
    } catch (problem) {
      fill(holder, el("p", { class: "note bad", role: "alert" }, problem.message));
    }
  }
  return { refresh };
}

function drawn(/** @type {BaseReadinessResponse} */ report, /** @type {boolean} */ opened) {
  if (!report.readable && !report.unreadable && !report.pending) return null;
  return el(
    "section",
    { class: "readiness", "aria-label": "Readiness" },
    el(
      "dl",
      { class: "gauges" },
      gauge(report.readable, report.readable === 1 ? "document ready" : "documents ready"),
      gauge(report.pages, report.pages === 1 ? "page" : "pages"),
      gauge(report.passages, report.passages === 1 ? "passage" : "passages"),
      report.pending ? gauge(report.pending, "waiting") : null,
      report.unreadable ? gauge(report.unreadable, "could not be read", "bad") : null,
      languages(report.languages),
    ),
    report.unreadable + report.warnings.length ? troubles(report, opened) : null,
  );
}

/** A figure with what it counts. */
export function gauge(/** @type {number | string} */ number, /** @type {string} */ words, kind = "") {
  return el("div", { class: ["gauge", kind] }, el("dt", {}, words), el("dd", {}, typeof number === "number" ? count(number) : number));
}

function languages(/** @type {any} */ found) {
  const all = Object.entries(found).sort((a, b) => b[1] - a[1]);
  if (!all.length) return null;
  const words = all.slice(0, 4).map(([code, number]) => (all.length > 1 ? `${nameOf(code)} ${number}` : nameOf(code)));
  if (all.length > 4) words.push(`${all.length - 4} more`);
  return el("div", { class: "gauge wordy" }, el("dt", {}, all.length === 1 ? "language" : "languages"), el("dd", {}, words.join(", ")));
}

function nameOf(/** @type {string} */ code) {
  try {
    return NAMES.of(code) ?? code;
  } catch {
    return code;
  }
}

function troubles(/** @type {BaseReadinessResponse} */ report, /** @type {boolean} */ opened) {
  const many = report.unreadable - report.problems.length;
  const summary = [
    report.unreadable ? `${plural(report.unreadable, "file")} could not be read` : "",
    report.warnings.length ? plural(report.warnings.length, "remark") : "",
  ].filter(Boolean);
  return el(
    "details",
    { class: "fold troubles", open: opened },
    el("summary", {}, `${summary.join(", ")}: what to do`),
    ...report.warnings.map((words) => el("p", { class: "note warn" }, words)),
    report.problems.length
      ? el(
          "ul",
          { class: "problems" },
          ...report.problems.map((file) => el("li", {}, el("strong", { dir: "auto" }, file.name), el("span", {}, file.why))),
          many > 0 ? el("li", { class: "muted" }, `and ${plural(many, "more file")}: choose “Could not be read” in the list below.`) : null,
        )
      : null,
  );
}
