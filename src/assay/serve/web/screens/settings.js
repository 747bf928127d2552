// Settings of the server, for an administrator. The server validates them; each change is on record.

import { get, patch } from "../lib/api.js";
import { el, fill, plural } from "../lib/dom.js";
import { actions, check, confirm, failed, field, icon, loading, pageHead } from "../lib/ui.js";

export async function show(/** @type {HTMLElement} */ root, /** @type {Params} */ params, /** @type {App} */ app) {
  app.title("Settings");
  const body = el("div", { class: "settings" }, loading());
  fill(
    root,
    el(
      "div",
      { class: "page" },
      pageHead("Settings", "They hold for everybody from the next question on. Each change is recorded with your name."),
      body,
    ),
  );
  await load();

  async function load() {
    try {
      draw(await get("/api/settings"));
    } catch (problem) {
      if (problem.status !== 401) fill(body, failed(problem, load, problem.status === 404 ? "Only for administrators" : undefined));
    }
  }

  function draw(/** @type {SettingsResponse} */ { groups }) {
    const controls = groups.flatMap((group) => group.settings.map((setting) => ({ setting, ...control(setting) })));
    const said = el("div", { role: "status" });
    const save = el("button", { type: "submit", class: "button primary", disabled: true }, "Save");
    const undo = el("button", { type: "reset", class: "button", disabled: true }, "Undo");
    const changed = () => controls.filter(({ setting, read }) => !setting.fixed && read() !== setting.value);

    function look() {
      const many = changed().length;
      save.disabled = undo.disabled = !many;
      save.textContent = many ? `Save ${plural(many, "change")}` : "Save";
    }

    async function submit(/** @type {Event} */ event) {
      event.preventDefault();
      const wanted = changed();
      const shorter = wanted.find(({ setting, read }) => setting.name === "retention_days" && read() && (!setting.value || read() < setting.value));
      if (shorter && !(await confirm(
        "Keep records for a shorter time?",
        `What runs recorded more than ${plural(Number(shorter.read()), "day")} ago is erased for good, within a day.`,
        "Keep them shorter",
      ))) return;
      save.disabled = true;
      fill(said);
      try {
        const now = await patch("/api/settings", { values: Object.fromEntries(wanted.map(({ setting, read }) => [setting.name, read()])) });
        app.me = await get("/api/me");
        app.toast(`${plural(wanted.length, "setting")} changed.`, "good");
        draw(now);
      } catch (problem) {
        fill(said, el("p", { class: "note bad", role: "alert" }, icon("warning"), el("span", {}, problem.message)));
        save.disabled = false;
      }
    }

    fill(
      body,
      el(
        "form",
        { class: "settings-form", on: { submit, input: look, reset: () => setTimeout(look) } },
        ...groups.map((group) => el(
          "section",
          { class: "card", "aria-label": group.title },
          el("h2", {}, group.title),
          el("div", { class: "fields" }, ...controls.filter(({ setting }) => group.settings.includes(setting)).map(({ node }) => node)),
        )),
        el("div", { class: "settings-foot" }, said, actions(save, undo)),
      ),
    );
  }
}

/** One setting as `{node, read}`. */
function control(/** @type {ShownSetting} */ setting) {
  const disabled = Boolean(setting.fixed);
  const hint = [sentence(setting.about), setting.fixed || standard(setting)].join(" ");
  if (setting.kind === "switch") {
    const box = el("input", { type: "checkbox", checked: setting.value, disabled, name: setting.name });
    box.defaultChecked = Boolean(setting.value);
    const node = el("div", { class: "field" }, check(box, setting.label), el("p", { class: "hint", id: `${setting.name}-hint` }, hint));
    box.setAttribute("aria-describedby", `${setting.name}-hint`);
    return { node, read: () => box.checked };
  }
  if (setting.kind === "several") {
    const chosen = String(setting.value).split(",").map((each) => each.trim()).filter(Boolean);
    const boxes = setting.choices.map((value) => {
      const box = el("input", { type: "checkbox", value, checked: chosen.includes(value), disabled });
      box.defaultChecked = chosen.includes(value);
      return box;
    });
    const read = () => {
      const now = boxes.filter((box) => box.checked).map((box) => box.value);
      return now.length === chosen.length && now.every((each) => chosen.includes(each)) ? setting.value : now.join(", ");
    };
    const node = el(
      "fieldset",
      { class: "field plain" },
      el("legend", { class: "legend" }, setting.label),
      ...boxes.map((box) => check(box, box.value)),
      el("p", { class: "hint" }, hint),
    );
    return { node, read };
  }
  if (setting.kind === "choice") {
    const chosen = String(setting.value);
    const values = setting.choices.includes(chosen) ? setting.choices : [chosen, ...setting.choices];
    const choice = el("select", { name: setting.name, disabled }, ...values.map((value) => el("option", { value, selected: value === chosen }, value)));
    for (const option of choice.options) option.defaultSelected = option.value === chosen;
    return { node: field(setting.label, choice, hint), read: () => choice.value };
  }
  const numeric = setting.kind !== "words";
  const input = el("input", {
    type: numeric ? "number" : "text",
    name: setting.name,
    value: String(setting.value),
    min: setting.least === null ? null : String(setting.least),
    max: setting.most === null ? null : String(setting.most),
    step: numeric ? (setting.kind === "whole" ? "1" : "any") : null,
    required: numeric,
    disabled,
    autocomplete: "off",
  });
  input.defaultValue = String(setting.value);
  return { node: field(setting.label, input, hint), read: () => (numeric ? Number(input.value) : input.value.trim()) };
}

function sentence(/** @type {string} */ words) {
  const plain = words.replaceAll("`", "");
  return `${plain.charAt(0).toUpperCase()}${plain.slice(1)}.`;
}

function standard(/** @type {ShownSetting} */ { kind, value, default: usual }) {
  if (value === usual) return "";
  if (kind === "switch") return `Usually ${usual ? "on" : "off"}.`;
  return usual === "" ? "Usually empty." : `Usually ${usual}.`;
}
