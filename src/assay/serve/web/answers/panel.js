// What lies at the right of a conversation: the evidence of a turn, or a document at the words that were cited.

import { el, fill } from "../lib/dom.js";
import { evidenceView } from "./evidence.js";
import { iconButton } from "../lib/ui.js";
import { documentView } from "../documents/document_view.js";

const NARROW = "(max-width: 68rem)"; // the panel lies over the conversation

/** `screen` is the grid that the panel becomes the second column of. */
export function sidePanel(/** @type {HTMLElement} */ screen) {
  const title = el("h2", { class: "panel-title clip", id: "panel-title" });
  const back = iconButton("left", "Back to the evidence", () => backTo?.(), { hidden: true });
  const closer = iconButton("close", "Close", () => leave());
  const inside = el("div", { class: "panel-inside" });
  const node = el(
    "aside",
    { class: "panel", "aria-labelledby": title.id, hidden: true, tabindex: "-1" },
    el("header", { class: "panel-head" }, back, title, closer),
    inside,
  );
  screen.append(node);
  let clean = /** @type {(() => void) | null} */ (null);
  let backTo = /** @type {(() => void) | null} */ (null);
  let from = /** @type {HTMLElement | null} */ (null); // what it was opened from, which gets the focus back
  let library = /** @type {{ turn: Pick<Turn, "pieces">; view: ReturnType<typeof evidenceView>; many: number } | null} */ (null); // {turn, view} while the evidence is shown
  let pushed = false;

  function open(/** @type {string} */ name, /** @type {Child} */ content, /** @type {HTMLElement | null | undefined} */ opener, focus = true) {
    if (opener && !node.contains(opener)) from = opener; // asked before what was inside goes, and the opener with it
    clean?.();
    clean = null;
    library = null;
    title.textContent = name;
    title.title = name;
    fill(inside, content);
    inside.scrollTop = 0;
    if (node.hidden) {
      node.hidden = false;
      screen.classList.add("has-panel");
      if (matchMedia(NARROW).matches) {
        history.pushState({ panel: true }, "", location.hash); // the phone's own way back closes it
        pushed = true;
        inert(true);
      }
    }
    if (focus) node.focus({ preventScroll: true });
  }

  /** What lies under the panel is out of reach as long as it is covered. */
  function inert(/** @type {boolean} */ on) {
    for (const under of document.querySelectorAll(".talk, .tabs")) under.inert = on;
  }

  function shut() {
    clean?.();
    clean = null;
    library = null;
    backTo = null;
    if (node.hidden) return;
    node.hidden = true;
    pushed = false;
    screen.classList.remove("has-panel");
    inert(false);
    fill(inside);
    if (from?.isConnected) from.focus({ preventScroll: true });
  }

  function leave() {
    if (pushed) history.back();
    else shut();
  }

  function openEvidence(/** @type {Pick<Turn, "pieces">} */ turn, /** @type {HTMLElement | null | undefined} */ opener = null, focus = true) {
    const view = evidenceView((piece, button) => openDocument(piece, button, () => openEvidence(turn)));
    open("Evidence", view.node, opener, focus);
    backTo = null;
    back.hidden = true;
    view.show(turn.pieces());
    library = { turn, view, many: turn.pieces().length };
  }

  function openDocument(/** @type {Opened} */ source, /** @type {HTMLElement | null} */ opener = null, /** @type {(() => void) | null} */ way = null) {
    const view = documentView(source);
    open(source.title || source.name || "Document", view.node, opener);
    clean = view.close;
    backTo = way;
    back.hidden = !way;
  }

  /** Something else beside the conversation. */
  function openPart(/** @type {string} */ name, /** @type {Child} */ content, /** @type {HTMLElement | null | undefined} */ opener) {
    open(name, content, opener);
    backTo = null;
    back.hidden = true;
  }

  /** A turn has more evidence than before. */
  function gathered(/** @type {Turn} */ turn) {
    if (library?.turn !== turn || turn.pieces().length === library.many) return;
    library.many = turn.pieces().length;
    library.view.show(turn.pieces());
  }

  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || node.hidden || document.querySelector("dialog[open]")) return;
    if (!node.contains(document.activeElement) && document.activeElement !== document.body) return;
    event.preventDefault();
    leave();
  };
  const gone = () => node.hidden || shut();
  document.addEventListener("keydown", keys);
  window.addEventListener("popstate", gone);

  function close() {
    document.removeEventListener("keydown", keys);
    window.removeEventListener("popstate", gone);
    inert(false);
    clean?.();
  }

  return { openEvidence, openDocument, openPart, gathered, close };
}
