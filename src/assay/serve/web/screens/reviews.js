// The queue of reviews: answers that wait for a person before anybody reads them, and those that were decided.

import { at, get, query } from "../lib/api.js";
import { ago, dotted, el, fill } from "../lib/dom.js";
import { paged } from "../lib/paged_list.js";
import { badge, empty, icon } from "../lib/ui.js";

const PAGE = 50;
/** @type {Table} */
const STATES = {
  waiting: ["clock", "waits", "warn"],
  approved: ["check", "approved", "good"],
  delivered: ["check", "delivered", "good"],
  edited: ["pencil", "edited, being checked", "info"],
  rejected: ["close", "rejected", "bad"],
  superseded: ["again", "replaced by a newer draft", ""],
};

/** How a review stands, in a sign and a word. */
export function reviewState(/** @type {string} */ state) {
  const [sign, words, kind] = STATES[state] ?? ["info", state, ""];
  return badge([icon(sign, 13), words], kind);
}

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Reviews");
  const decided = params.state === "decided";
  const screen = el(
    "div",
    { class: "page reviews" },
    el(
      "header",
      { class: "page-head" },
      el(
        "div",
        {},
        el("h1", {}, "Reviews"),
        el("p", { class: "muted" }, "Answers that a person looks at before whoever asked can read them."),
      ),
      el(
        "nav",
        { class: "segments links", "aria-label": "Which reviews" },
        tab("#/reviews", "Waiting", !decided),
        tab("#/reviews?state=decided", "Decided", decided),
      ),
    ),
  );
  fill(root, screen);
  const pages = paged(screen, {
    label: decided ? "Decided reviews" : "Waiting reviews",
    fetch: async (after) => {
      const page = await get(query("/api/reviews", { state: decided ? "decided" : "waiting", after, limit: PAGE }));
      return { items: page.reviews, next: page.next, total: null };
    },
    row,
    none: () => (decided
      ? empty("Nothing was decided yet", "Approvals, edits and rejections are listed here.")
      : empty(
        "Nothing waits for a review",
        "Answers come here when the rules of this workspace hold them, or when whoever asks wants them reviewed.",
        el("a", { class: "button", href: "#/reviews?state=decided" }, "See what was decided"),
      )),
  });
  pages.restart();
  app.reviewsChanged();
  return pages.close;
}

function tab(/** @type {string} */ href, /** @type {string} */ words, /** @type {boolean} */ current) {
  return el("a", { href, "aria-current": current ? "page" : null }, words);
}

function row(/** @type {ReviewSummary} */ review) {
  const when = review.decided ? `${review.by ? `by ${review.by}, ` : ""}${ago(review.decided)}` : ago(review.created);
  return el(
    "li",
    { class: "row review-row" },
    el(
      "div",
      { class: "grow" },
      el("a", { class: "row-title", href: `#${at("review", review.run)}`, dir: "auto" }, review.question || "(erased)"),
      el("p", { class: "row-more" }, dotted(`Asked by ${review.who}`, when, review.four_eyes ? "four eyes" : "")),
      review.reasons.length ? el("p", { class: "row-more" }, `Held because ${review.reasons.join("; ")}`) : null,
      review.note ? el("p", { class: "row-more", dir: "auto" }, `“${review.note}”`) : null,
      review.state === "waiting" && !review.may_decide && review.why_not
        ? el("p", { class: "row-more why-not" }, icon("lock", 13), review.why_not)
        : null,
    ),
    reviewState(review.state),
  );
}
