// How files come in: chosen, dropped anywhere on the screen, or named by the path of a folder on this computer.

import { post } from "../lib/api.js";
import { carriesFiles, dropped, selectedFiles } from "./dropped_files.js";
import { el } from "../lib/dom.js";
import { button, field } from "../lib/ui.js";
import { takeUp } from "./uploads.js";

/** Buttons for those who do not drop: a file picker and a folder picker. */
export function pickers(/** @type {Put} */ put) {
  return [picker("Add folder", "", { webkitdirectory: true }, put), picker("Add files", "primary", {}, put)];
}

function picker(/** @type {string} */ words, /** @type {string} */ kind, /** @type {Record<string, unknown>} */ more, /** @type {Put} */ put) {
  const input = el("input", { type: "file", multiple: true, hidden: true, ...more });
  input.addEventListener("change", () => {
    const files = selectedFiles(input.files ?? []);
    input.value = "";
    put(files);
  });
  return [button(words, { kind, icon: "upload", on: () => input.click() }), input];
}

/** A folder of this computer by its path: where the server has one user, who is at it. */
export function folderPath(/** @type {App} */ app, /** @type {string} */ base) {
  if (!app.me.folders) return null;
  const input = el("input", { type: "text", placeholder: "/home/ada/papers", autocomplete: "off", spellcheck: "false" });
  const form = el(
    "form",
    {
      class: "folder-path",
      on: {
        submit: async (event) => {
          event.preventDefault();
          if (!input.value.trim()) return;
          await app.attempt(async () => {
            await post("/api/folders", { path: input.value.trim(), base });
            input.value = "";
            await takeUp();
          });
        },
      },
    },
    field("Or the path of a folder on this computer", input),
    el("button", { type: "submit", class: "button" }, "Add it"),
  );
  return form;
}

/** The whole screen takes files that are dropped on it. */
export function dropTarget(/** @type {HTMLElement} */ screen, /** @type {string} */ words, /** @type {Put} */ put) {
  const veil = el("div", { class: "drop-veil", hidden: true, "aria-hidden": "true" }, el("p", {}, words));
  screen.append(veil);
  let leaving = 0;
  const over = (/** @type {DragEvent} */ event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    veil.hidden = false;
    clearTimeout(leaving);
    leaving = setTimeout(() => (veil.hidden = true), 400); // drags tell that they are there, not that they have gone
  };
  const drop = async (/** @type {DragEvent} */ event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    clearTimeout(leaving);
    veil.hidden = true;
    put(await dropped(event));
  };
  window.addEventListener("dragover", over);
  window.addEventListener("drop", drop);
  return () => {
    clearTimeout(leaving);
    window.removeEventListener("dragover", over);
    window.removeEventListener("drop", drop);
  };
}
