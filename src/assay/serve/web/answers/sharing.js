// Who else may read a thread. They see its questions, and the answers whose documents they may read themselves.

import { entry, named, offered } from "../documents/readers.js";
import { at, get, post } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { button, dialog, failed, field, iconButton, loading, submit } from "../lib/ui.js";

export function shareThread(/** @type {App} */ app, /** @type {ThreadSummary} */ thread) {
  return dialog(`Who may read “${thread.title}”`, (close) => {
    const path = /** @type {const} */ (`${at("api", "threads", thread.id)}/readers`);
    const list = el("ul", { class: "access-list", "aria-label": "Who may read it" }, loading());
    const wrong = el("p", { class: "note bad", role: "alert", hidden: true });
    const kind = el("select", {}, el("option", { value: "user" }, "Person"), el("option", { value: "group" }, "Group"));
    const name = el("input", { type: "text", maxlength: "100", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true });

    function draw(/** @type {ThreadReadersResponse} */ { readers, accepted }) {
      fill(list, ...(readers.length
        ? readers.map((reader) => entry(reader, [
          offered(reader, accepted),
          iconButton("close", `Take access from ${named(reader).words}`, () => change(reader, false)),
        ]))
        : [el("li", { class: "muted" }, "Nobody but you.")]));
    }

    async function change(/** @type {string} */ reader, /** @type {boolean} */ may) {
      const { words: called } = named(reader);
      wrong.hidden = true;
      try {
        draw(await post(path, { name: reader, may }));
        app.announce(may ? `It is offered to ${called}` : `${called} may not read it any more`);
        return true;
      } catch (problem) {
        wrong.textContent = problem.message;
        wrong.hidden = false;
        return false;
      }
    }

    const form = el("form", { class: "access-give" }, field("Who", kind), field("Name", name), submit("Share"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await change(`${kind.value}:${name.value.trim()}`, true)) form.reset();
      name.focus();
    });
    get(path).then(draw, (problem) => fill(list, failed(problem)));
    return [
      el("p", { class: "muted" }, "It is offered to them. Once they accept it, they see your questions, and every answer whose documents they may read themselves. Other answers are withheld."),
      list,
      form,
      wrong,
      el("div", { class: "actions end" }, button("Done", { on: () => close() })),
    ];
  }, { wide: true });
}
