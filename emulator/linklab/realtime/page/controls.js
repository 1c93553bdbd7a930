// The controls of a link: a slider and a field for each value, impairments, and buttons.

import { make, setText, showText } from "./elements.js";
import { CONTROLS, STEPS } from "./quantities.js";

const WAIT_MS = 200; // A key that is held moves a slider often.

const LONGEST = 12; // Rates of traces have more digits than a field can show.

// What is wrong with a field's text, beside the field.
class Problem {
  constructor(field) {
    this.field = field;
    this.element = make("span", { class: "problem", id: `${field.id}-problem`, role: "alert" });
  }

  say(problem) {
    showText(this.element, problem);
    this.field.setAttribute("aria-invalid", String(problem !== ""));
    if (problem) this.field.setAttribute("aria-describedby", this.element.id);
    else this.field.removeAttribute("aria-describedby");
  }

  // Sends a change, and says what the lab refuses. Returns whether it was done.
  async tell(sending) {
    try {
      await sending;
      this.say("");
      return true;
    } catch (error) {
      this.say(error.isToken ? "" : error.message);
      return false;
    }
  }
}

class Row {
  constructor(link, name, change) {
    const { label, scale, write } = CONTROLS[name];
    this.name = name;
    this.change = change;
    this.scale = scale;
    this.write = write;
    this.shown = "";
    this.timer = 0;
    this.isHeld = false;
    this.isSending = false;
    const id = `${link}-${name}`;
    this.slider = make("input", {
      type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${label} of ${link}`,
      oninput: () => this.#slide(write(scale.value(Number(this.slider.value)))),
      onpointerdown: () => (this.isHeld = true),
      onpointerup: () => (this.isHeld = false),
      onpointercancel: () => (this.isHeld = false),
    });
    this.field = make("input", {
      id, autocomplete: "off", spellcheck: "false",
      onchange: () => this.#send(),
      onkeydown: (event) => event.key === "Escape" && this.#show(this.shown),
    });
    this.problem = new Problem(this.field);
    this.element = make("div", { class: "row" }, make("label", { for: id }, label), this.slider, this.field, this.problem.element);
  }

  #slide(text) {
    this.field.value = text;
    this.slider.setAttribute("aria-valuetext", text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#send(), WAIT_MS);
  }

  async #send() {
    clearTimeout(this.timer);
    this.timer = 0;
    const wanted = this.field.value.trim();
    this.isSending = true;
    if (await this.problem.tell(this.change({ [this.name]: wanted }))) this.shown = wanted;
    this.isSending = false;
  }

  #show(text) {
    this.field.value = text;
    this.problem.say("");
  }

  // Shows what the link is, unless somebody is changing it.
  update([value, text], isByHand) {
    this.element.classList.toggle("hand", isByHand);
    const isTyped = document.activeElement === this.field && this.field.value !== this.shown;
    const isBusy = this.timer !== 0 || this.isHeld || this.isSending || isTyped;
    if (isBusy || this.field.getAttribute("aria-invalid") === "true") return;
    this.shown = text.length > LONGEST ? this.write(value) : text;
    if (this.field.value !== this.shown) this.field.value = this.shown;
    const step = String(this.scale.step(value));
    if (this.slider.value !== step) this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", this.shown);
  }
}

// Any key of the link, or any impairment of either direction. `keys` has what each does, by the key of the
// direction, "" for the link's own.
class Keys {
  constructor(link, keys, change) {
    const id = `${link}-impair`;
    this.keys = keys;
    this.change = change;
    const option = (name, words) => make("option", { value: name }, words);
    this.way = make("select", { id: `${id}-way`, "aria-label": `Direction to impair of ${link}`, onchange: () => this.#list() });
    this.way.append(...Object.keys(keys).map((name) => option(name, name || "link")));
    this.way.value = "impair_down";
    this.key = make("select", { id: `${id}-key`, "aria-label": `Impairment of ${link}`, onchange: () => this.#explain() });
    this.field = make("input", { id, autocomplete: "off", spellcheck: "false", "aria-label": `Value of the impairment of ${link}`, onchange: () => this.#send() });
    this.problem = new Problem(this.field);
    this.about = make("p", { class: "dim" });
    this.now = make("p", { class: "impaired" });
    const row = make("div", { class: "impair" }, this.way, this.key, this.field, this.problem.element);
    this.element = make("details", {}, make("summary", {}, "Impairments and more"), row, this.about, this.now);
    this.#list();
  }

  #list() {
    this.key.replaceChildren(...Object.keys(this.keys[this.way.value]).map((name) => make("option", { value: name }, name)));
    this.#explain();
  }

  #explain() {
    setText(this.about, this.keys[this.way.value][this.key.value]);
    this.field.value = "";
    this.problem.say("");
  }

  #send() {
    const text = this.field.value.trim();
    const change = { [this.key.value]: { true: true, false: false }[text] ?? text };
    this.problem.tell(this.change(this.way.value ? { [this.way.value]: change } : change));
  }

  update(impaired) {
    const words = (key) => Object.entries(impaired[key]).map(([name, value]) => `${name} ${value}`).join(", ");
    const all = ["down", "up"].filter((way) => words(`impair_${way}`)).map((way) => `${way}: ${words(`impair_${way}`)}`);
    setText(this.now, all.join("; "));
  }
}

export class Controls {
  // `send(change)` changes the link as an event says it; it throws what the lab refuses.
  constructor(link, accessPoints, keys, presets, send) {
    const press = (change) => () => send(change).catch(() => {});
    this.rows = Object.keys(CONTROLS).map((name) => new Row(link, name, send));
    this.keys = new Keys(link, keys, send);
    this.isDown = false;
    this.down = make("button", { type: "button", onclick: () => press({ carrier: this.isDown ? "up" : "down" })() }, "Down");
    this.endOutage = make("button", { type: "button", onclick: press({ outage: false }) }, "End outage");
    const target = make("select", { "aria-label": `Access point of ${link}` }, make("option", { value: "next" }, "next"));
    target.append(...accessPoints.map((name) => make("option", { value: name }, name)));
    const handover = make("button", { type: "button", onclick: () => press({ handover: target.value })() }, "Handover");
    const preset = ([name, { title, change }]) => make("button", { type: "button", title, onclick: press(change) }, name);
    const buttons = make(
      "div",
      { class: "buttons" },
      this.down,
      make("button", { type: "button", onclick: press({ carrier: "down", for: "3 s" }) }, "Down for 3 s"),
      this.endOutage,
      handover,
      ...(accessPoints.length > 1 ? [target] : []),
      make("button", { type: "button", onclick: press({ restore: true }) }, "As the scenario says"),
    );
    this.element = make("fieldset", { class: "controls" }, make("legend", {}, `Change ${link}`), ...this.rows.map((row) => row.element), this.keys.element, make("div", { class: "buttons", role: "group", "aria-label": `Presets of ${link}` }, ...Object.entries(presets).map(preset)), buttons);
  }

  update({ values, impaired, by_hand, up, out }) {
    const changed = new Set(by_hand.map((words) => words.split(" ")[0]));
    for (const row of this.rows) row.update(values[row.name], changed.has(row.name));
    this.keys.update(impaired);
    this.isDown = changed.has("carrier");
    this.endOutage.hidden = !(up && out);
    setText(this.down, this.isDown ? "Up again" : "Down");
  }
}
