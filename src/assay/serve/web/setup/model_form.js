// Which model is asked: its address, its name, its key; what would be sent to it, agreed to by name; and a test.

import { del, get, post, put } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { actions, afterTyping, bullets, button, check, confirm, failed, field, icon, loading, note, spinner } from "../lib/ui.js";

const PROVIDERS = {
  OpenAI: "https://api.openai.com/v1",
  Anthropic: "https://api.anthropic.com/v1",
  Google: "https://generativelanguage.googleapis.com/v1beta/openai",
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
    const address = el("input", { type: "url", value: now.address, placeholder: "http://127.0.0.1:11434/v1", required: true });
    const model = el("input", { type: "text", value: now.model, placeholder: "as it is called there", autocomplete: "off", required: true });
    const key = el("input", { type: "password", autocomplete: "off", placeholder: now.has_key ? "kept as it is" : "none" });
    const leaves = el("div", { class: "recipients", role: "status" });
    const said = el("div", { role: "status" });
    const { fixed: named = [] } = now;
    const fixed = named.length > 0;
    const agreed = new Set();
    let hosts = now.recipients;
    let asked = "";
    for (const each of [address, model, key]) each.disabled = fixed;
    const here = el("div", { class: "model-choices", role: "status" });
    const there = el("div", { role: "status" });
    if (!fixed && !now.model) look();

    /** Offer the models that run on this machine. */
    async function look() {
      const { servers } = await post("/api/model/here").catch(() => ({ servers: [] }));
      if (!servers.length) return;
      const offered = servers.flatMap((/** @type {ServerHere} */ at) => at.models.map((name) => choice(`${name} (${at.program})`, () => take(at.address, name))));
      fill(here, el("p", { class: "legend" }, "On this computer"), el("div", { class: "chips" }, ...offered));
    }

    function take(/** @type {string} */ at, name = "") {
      [address.value, model.value] = [at, name];
      fill(there);
      fill(said);
      preview();
    }

    const elsewhere = Object.entries(PROVIDERS).map(([name, at]) => choice(name, () => {
      take(at);
      key.focus();
    }));

    const request = () => ({ address: address.value.trim(), model: model.value.trim(), key: key.value, agree: [...agreed] });

    /** What would leave, said before it can be agreed to. */
    async function preview() {
      const wanted = `${address.value.trim()} ${model.value.trim()}`;
      if (wanted === asked) return;
      asked = wanted;
      agreed.clear();
      if (!address.value.trim()) return fill(leaves);
      try {
        const would = await post("/api/model/preview", { ...request(), key: "", agree: [] });
        if (wanted !== asked) return undefined;
        hosts = would.recipients;
        fill(leaves, ...recipients(would, agreed));
      } catch (problem) {
        if (wanted === asked) fill(leaves, note("warn", "warning", problem.message));
      }
      return undefined;
    }

    async function act(/** @type {HTMLButtonElement} */ button_, /** @type {string} */ words, /** @type {() => Promise<void>} */ work, /** @type {(problem: any) => Child} */ otherwise = () => null) {
      await preview();
      button_.disabled = true;
      fill(said, el("p", { class: "note" }, spinner(), words));
      try {
        await work();
      } catch (problem) {
        fill(said, note("bad", "warning", problem.message), otherwise(problem));
      }
      button_.disabled = false;
    }

    const list = (/** @type {Click} */ event) => act(event.currentTarget, "Asking which models there are…", async () => {
      const { names } = await post("/api/model/names", { ...request(), model: "" });
      fill(said, names.length ? null : note("", "info", "It lists no models. Type the name of one."));
      if (names.length === 1) [model.value] = names;
      fill(there, names.length > 1 ? field(`${names.length} models there`, pick(names)) : null);
      there.querySelector("select")?.focus();
      await preview();
    });

    function pick(/** @type {readonly string[]} */ names) {
      const select = el("select", {}, el("option", { value: "" }, "Choose one"), ...names.map((name) => el("option", { value: name, selected: name === model.value }, name)));
      select.addEventListener("change", () => {
        if (select.value) model.value = select.value;
        preview();
      });
      return select;
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

    /** A wrong address, key or name is told before it is stored; whoever knows better stores it all the same. */
    const save = (/** @type {Click} */ event) => act(event.currentTarget, "Connecting…", async () => {
      if (hosts.every((each) => each.agreed || agreed.has(each.host))) await post("/api/model/names", request());
      await connect();
    }, (problem) => (problem.status === 502 ? actions(button("Use it all the same", { kind: "small", on: anyway })) : null));
    const anyway = (/** @type {Click} */ event) => act(event.currentTarget, "Connecting…", connect);
    async function connect() {
      const next = await put("/api/model", request());
      await told(`Questions are answered with ${next.model} from now on.`);
    }
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

    for (const each of [address, model]) {
      each.addEventListener("change", preview);
      afterTyping(each, preview, 500);
    }
    for (const each of [address, model, key]) each.addEventListener("input", () => fill(said));
    address.addEventListener("input", () => fill(there));
    fill(
      holder,
      fixed ? note("", "info", `The environment of the server sets ${named.join(", ")}: that is changed there.`) : null,
      app.me.unconnected ? note("warn", "warning", app.me.unconnected) : null,
      here,
      fixed ? null : el("div", { class: "model-choices" }, el("p", { class: "legend" }, "Of a provider"), el("div", { class: "chips" }, ...elsewhere)),
      el(
        "div",
        { class: "fields" },
        field("Address", address, "Of an OpenAI-compatible endpoint, up to /v1. One on this computer keeps everything here."),
        field("Key", key, "Stored on the server for its user alone, and never shown again."),
        el("div", { class: "model-name" }, field("Model", model), fixed ? null : button("Show its models", { kind: "small", icon: "list", on: list }), there),
      ),
      leaves,
      el(
        "div",
        { class: "actions" },
        button("Use this model", { kind: "primary", on: save }),
        button("Test it", { on: test }),
        now.model && !fixed ? button("Disconnect", { kind: "quiet", on: without }) : null,
      ),
      said, // below the buttons, which stay where they are
      now.model && app.me.judge ? el("p", { class: "small muted" }, app.me.judge) : null,
    );
    asked = "";
    if (now.address) preview();
  }
}

function choice(/** @type {string} */ words, /** @type {() => void} */ on) {
  return el("button", { type: "button", class: "chip", on: { click: on } }, words);
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
