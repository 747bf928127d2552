// The documents: knowledge bases, what is in them, and how files get there.

import { baseAccess } from "../documents/access.js";
import { get } from "../lib/api.js";
import { adding } from "../documents/upload_panel.js";
import { FIRST, baseCard, baseFor, deleteBase, describeBase, leaveBase, newBase, offerList, placeOf } from "../documents/bases.js";
import { add, el, fill, plural } from "../lib/dom.js";
import { dropTarget, folderPath, pickers } from "../documents/file_pickers.js";
import { library } from "../documents/document_list.js";
import { actions, button, empty, icon } from "../lib/ui.js";
import { readiness } from "../documents/readiness.js";
import { send, standing, takeUp, watch, whenOver } from "../documents/uploads.js";
import { watches } from "../documents/watches.js";

const REFRESH = 4000; // milliseconds between looks at the list while files come in
let voice = /** @type {App | null} */ (null); // the end is told wherever the person is by then

whenOver((now) => {
  if (!now.count.ready && !now.count.unreadable) return;
  const bad = now.count.unreadable ? `, ${now.count.unreadable} could not be read` : "";
  voice?.toast(`${plural(now.count.ready, "file")} ready to be asked about${bad}.`, now.count.ready ? "good" : "bad");
});

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  voice = app;
  const name = params.base ?? "";
  app.title(name || "Documents");
  const bases = await get("/api/bases"); // what goes wrong here is told by the frame
  const base = bases.find((each) => each.name === name);
  const offers = name ? [] : await get("/api/offers");
  if (name && !base) {
    const words = `There is none called “${name}”, or it is not shared with you.`;
    fill(
      root,
      el(
        "div",
        { class: "state" },
        el("h1", {}, "No such knowledge base"),
        el("p", {}, words),
        el("div", { class: "actions" }, el("a", { class: "button", href: "#/documents" }, "See all documents")),
      ),
    );
    return undefined;
  }
  const screen = el("div", { class: "page documents" });
  fill(root, screen);
  return drawn(screen, app, bases, base, offers);
}

function drawn(/** @type {HTMLElement} */ screen, /** @type {App} */ app, /** @type {BaseView[]} */ bases, /** @type {BaseView | undefined} */ base, /** @type {OfferView[]} */ offers) {
  const closers = /** @type {(() => void)[]} */ ([]);
  const may = (/** @type {string} */ which) => bases.some((each) => each.name === which && each.yours);
  const fillable = base ? base.yours : true;
  const put = async (/** @type {Chosen[]} */ files) => {
    if (!files.length) return app.toast("There is no file in what you chose.", "bad");
    return app.attempt(async () => {
      const into = await baseFor(base?.name);
      if (!into) return;
      send(files, into, app.me.upload_megabytes);
      if (!bases.some((each) => each.name === into)) app.go("#/documents"); // it was made for them
    });
  };
  const holder = base ? el("div", { class: "readiness-holder" }) : null;
  const cards = el("ul", { class: "cards", "aria-label": "Knowledge bases", hidden: !bases.length }, ...bases.map(baseCard));
  const report = base && holder ? readiness(holder, base.name) : { refresh: () => counted(cards) };
  const section = el("section", { class: "library", "aria-label": base ? `Documents of ${base.name}` : "All documents" });
  add(screen, base ? baseHead(app, base, fillable ? put : null) : overview(app, cards, put, offers));
  closers.push(adding(screen, app));
  const followed = el("div", { class: "watches-holder" });
  add(screen, holder, followed, !base && bases.length ? el("h2", {}, "All documents") : null, section);
  const list = library(section, app, {
    base: base?.name,
    alone: bases.length === 1,
    mayRemove: may,
    none: () => invitation(app, fillable ? put : null, base),
    changed: report.refresh,
  });
  closers.push(list.close);
  const look = () => {
    if (list.free) list.refresh();
    report.refresh();
  };
  closers.push(watches(followed, app, bases, base?.name, look).close);
  if (base) report.refresh();
  if (fillable) closers.push(dropTarget(screen, base ? `Drop to add to ${base.name}` : "Drop to add", put));
  closers.push(keptUp(list, report));
  takeUp().catch(() => {}); // the list says what is wrong, if the server is
  return () => closers.forEach((close) => close());
}

/** The cards with what is in the bases now; they stay as they are when nobody can say. */
async function counted(/** @type {HTMLElement} */ cards) {
  try {
    fill(cards, ...(await get("/api/bases")).map(baseCard));
  } catch {
    // the next look may tell
  }
}

/** While files come in, the list follows; but not under the hands of somebody who has scrolled down in it. */
function keptUp(/** @type {ReturnType<typeof library>} */ list, /** @type {{ refresh(): unknown }} */ report) {
  let seen = standing().done;
  let last = 0;
  const done = (/** @type {Standing} */ now) => now.done + now.earlier.reduce((sum, job) => sum + job.done, 0);
  return watch((now) => {
    if (done(now) === seen || (now.busy && performance.now() - last < REFRESH)) return;
    seen = done(now);
    last = performance.now();
    if (list.free) list.refresh();
    report.refresh();
  });
}

function overview(/** @type {App} */ app, /** @type {HTMLElement} */ cards, /** @type {Put} */ put, /** @type {OfferView[]} */ offers) {
  const make = async () => {
    const made = await newBase(app);
    if (made) app.go(placeOf(made));
  };
  return [
    el(
      "header",
      { class: "page-head" },
      el("h1", {}, "Documents"),
      el("div", { class: "actions" }, button("New knowledge base", { icon: "plus", on: make }), ...pickers(put)),
    ),
    offerList(offers, app, () => app.go("#/documents")),
    cards,
  ];
}

function baseHead(/** @type {App} */ app, /** @type {BaseView} */ base, /** @type {Put | null} */ put) {
  const describe = async () => {
    if (await describeBase(base)) app.go(placeOf(base.name));
  };
  const remove = async () => {
    if (!(await deleteBase(base))) return;
    app.toast(`“${base.name}” is deleted.`);
    app.go("#/documents");
  };
  const leave = async () => {
    if (await leaveBase(base)) app.go("#/documents");
  };
  return el(
    "header",
    { class: "base-head" },
    el("a", { class: "crumb small", href: "#/documents" }, icon("left", 14), "All documents"),
    el("div", { class: "page-head" }, el("h1", { dir: "auto" }, base.name), put ? actions(...pickers(put)) : null),
    el("p", { class: ["muted", "base-lead"], dir: "auto" }, base.description || (put ? "No description yet. One helps to decide where to look." : "")),
    put
      ? el(
          "p",
          { class: "actions base-tools" },
          button(base.description ? "Change the description" : "Describe it", { kind: "quiet small", icon: "pencil", on: describe }),
          button("Who may read it", { kind: "quiet small", icon: "people", on: () => baseAccess(app, base) }),
          button("Delete it", { kind: "quiet small", icon: "trash", on: remove, "aria-label": `Delete it: the knowledge base ${base.name}` }),
        )
      : el(
          "p",
          { class: "actions base-tools" },
          el("span", { class: "muted small" }, `From ${base.owner}; you can read it and ask about it.`),
          button("Leave it", { kind: "quiet small", on: leave, "aria-label": `Leave it: the knowledge base ${base.name}` }),
        ),
  );
}

function invitation(/** @type {App} */ app, /** @type {Put | null} */ put, /** @type {BaseView | undefined} */ base) {
  if (!put) return empty("Nothing in here yet");
  return el(
    "div",
    { class: "state invite" },
    icon("upload", 32),
    el("h2", {}, base ? "Nothing in here yet" : "Begin with your documents"),
    el("p", {}, "Drop files or whole folders anywhere on this page: PDF, Word, PowerPoint, Excel, HTML, e-mail, EPUB, Markdown, plain text."),
    el("p", { class: "small" }, "Each file is read once. Files that cannot be read are listed with the reason."),
    actions(...pickers(put)),
    folderPath(app, base?.name ?? FIRST),
  );
}
