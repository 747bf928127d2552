// Which model is asked: its address, its name, its key; what would be sent to it, agreed to by name; and a test.

import { del, get, post, put } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { afterTyping, bullets, button, check, confirm, failed, field, icon, loading, note, spinner } from "../lib/ui.js";

const PROVIDERS = {
  OpenAI: "https://api.openai.com/v1",
  Anthropic: "https://api.anthropic.com/v1",
  Mistral: "https://api.mistral.ai/v1",
  Groq: "https://api.groq.com/openai/v1",
  OpenRouter: "https://openrouter.ai/api/v1",
};

/** The form, for an administrator. `changed()` hears when another model is asked from now on, or none. */
export function modelForm(/** @type {App} */ app, changed = () => {}) {
  const holder = el("div", { class: "model-form" }, loading());
  load();
  return holder;

  async function load() {
    try {
      draw(await get("/api/model"));
    } catch (problem) {
      if (problem.status !== 401) fill(holder, failed(problem, load));
    }
  }

  function draw(/** @type {ModelConnection} */ now) {
    const address = el("input", { type: "url", value: now.address, placeholder: "http://127.0.0.1:11434/v1", list: "providers", required: true });
    const model = el("input", { type: "text", value: now.model, placeholder: "the name that the endpoint gives it", autocomplete: "off", required: true });
    const key = el("input", { type: "password", autocomplete: "off", placeholder: now.has_key ? "kept as it is" : "none" });
    const leaves = el("div", { class: "recipients", role: "status" });
    const said = el("div", { role: "status" });
    const { fixed: named = [] } = now;
    const fixed = named.length > 0;
    const agreed = new Set();
    let asked = "";
    for (const each of [address, model, key]) each.disabled = fixed;
    const here = el("div", { class: "actions", role: "status" });
    if (!fixed && !now.model) look();

    /** Offer the models that run on this machine. */
    async function look() {
      const { servers } = await post("/api/model/here").catch(() => ({ servers: [] }));
      fill(here, ...servers.flatMap((/** @type {ServerHere} */ at) => at.models.map((name) => {
        const choose = () => {
          [address.value, model.value] = [at.address, name];
          preview();
        };
        return button(`${name} (${at.program})`, { on: choose });
      })));
    }

    const request = () => ({ address: address.value.trim(), model: model.value.trim(), key: key.value, agree: [...agreed] });

    /** What would leave, said before it can be agreed to. */
    async function preview() {
      const wanted = `${address.value.trim()} ${model.value.trim()}`;
      if (wanted === asked) return;
      asked = wanted;
      agreed.clear();
      fill(said);
      if (!address.value.trim() || !model.value.trim()) return fill(leaves);
      try {
        const would = await post("/api/model/preview", { ...request(), key: "", agree: [] });
        if (wanted === asked) fill(leaves, ...recipients(would, agreed));
      } catch (problem) {
        if (wanted === asked) fill(leaves, note("warn", "warning", problem.message));
      }
      return undefined;
    }

    async function act(/** @type {HTMLButtonElement} */ button_, /** @type {string} */ words, /** @type {() => Promise<void>} */ work) {
      await preview();
      button_.disabled = true;
      fill(said, el("p", { class: "note" }, spinner(), words));
      try {
        await work();
      } catch (problem) {
        fill(said, note("bad", "warning", problem.message));
      }
      button_.disabled = false;
    }

    const test = (/** @type {Click} */ event) => act(event.currentTarget, "Trying it with a few test sentences…", async () => {
      const found = await post("/api/model/test", request());
      fill(said, el(
        "div",
        { class: "note good" },
        icon("check"),
        el("div", {}, el("strong", {}, "It answers."), bullets(found.lines)),
      ));
    });
    const save = (/** @type {Click} */ event) => act(event.currentTarget, "Connecting…", async () => {
      const next = await put("/api/model", request());
      await told(`Questions are answered with ${next.model} from now on.`);
    });
    const without = async () => {
      if (now.model && !(await confirm("Go on without a model?", "Answers are quotations then, and nothing is sent to it any more. Its key is deleted.", "Disconnect", ""))) return;
      await del("/api/model");
      await told("No model is asked from now on.");
    };

    async function told(/** @type {string} */ words) {
      app.me = await get("/api/me");
      app.toast(words, "good");
      await load();
      changed();
    }

    for (const each of [address, model]) each.addEventListener("change", preview);
    afterTyping(address, preview, 500);
    fill(
      holder,
      fixed ? note("", "info", `The environment of the server sets ${named.join(", ")}: that is changed there.`) : null,
      here,
      el("datalist", { id: "providers" }, Object.entries(PROVIDERS).map(([name, at]) => el("option", { value: at }, name))),
      el(
        "div",
        { class: "fields" },
        field("Address", address, "Of an OpenAI-compatible endpoint, up to /v1. One on this computer keeps everything here."),
        field("Model", model),
        field("Key", key, "Stored on the server for its user alone, and never shown again."),
      ),
      leaves,
      said,
      el(
        "div",
        { class: "actions" },
        button("Use this model", { kind: "primary", on: save }),
        button("Test it", { on: test }),
        now.model && !fixed ? button("Disconnect", { kind: "quiet", on: without }) : null,
      ),
    );
    asked = "";
    if (now.model) preview();
  }
}

/** Each machine that text would be sent to, with what that is, and a box to agree to it. */
function recipients(/** @type {ModelConnection} */ would, /** @type {Set<string>} */ agreed) {
  if (!would.recipients.length) return [note("good", "lock", "This is an address of this computer: nothing leaves it.")];
  return would.recipients.map((each) => {
    const box = el("input", { type: "checkbox", checked: each.agreed, disabled: each.agreed });
    box.addEventListener("change", () => (box.checked ? agreed.add(each.host) : agreed.delete(each.host)));
    const what = each.receives.length ? each.receives.join("; ") : "what passes through it";
    return el(
      "div",
      { class: "note warn" },
      icon("out_of"),
      el(
        "div",
        {},
        el("p", {}, el("strong", {}, `To ${each.host} would be sent: `), `${what}. Files as a whole, the index and the records of runs stay here.`),
        check(box, each.agreed ? `Agreed: it may be sent to ${each.host}` : `I agree that it is sent to ${each.host}`),
      ),
    );
  });
}
