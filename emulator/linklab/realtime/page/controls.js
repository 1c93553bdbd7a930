// The controls of a link: a slider and a field for each value, impairments, and buttons.

import { make, setText, showText } from "./elements.js";
import { CONTROLS, STEPS } from "./quantities.js";

const WAIT_MS = 200; // A key that is held moves a slider often.

// The first words of what the lab says is by hand, by control.
const WORDS = { rate: "rate", uplink: "uplink", rtt: "RTT", jitter: "jitter", loss: "loss", queue: "queue" };

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
    if (await this.problem.tell(this.change(this.name, wanted))) this.shown = wanted;
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

// Any impairment of either direction. `keys` has what each does, as scenarios say it.
class Impairments {
  constructor(link, keys, change) {
    const id = `${link}-impair`;
    const option = (name, words) => make("option", { value: name }, words);
    this.way = make("select", { id: `${id}-way`, "aria-label": `Direction to impair of ${link}` }, option("down", "down"), option("up", "up"));
    this.key = make("select", { id: `${id}-key`, "aria-label": `Impairment of ${link}`, onchange: () => this.#explain() });
    this.key.append(...Object.keys(keys).map((name) => option(name, name)));
    this.field = make("input", { id, autocomplete: "off", spellcheck: "false", "aria-label": `Value of the impairment of ${link}`, onchange: () => this.#send() });
    this.problem = new Problem(this.field);
    this.about = make("p", { class: "dim" });
    this.now = make("p", { class: "impaired" });
    this.keys = keys;
    this.change = change;
    const row = make("div", { class: "impair" }, this.way, this.key, this.field, this.problem.element);
    this.element = make("details", {}, make("summary", {}, "Impairments"), row, this.about, this.now);
    this.#explain();
  }

  #explain() {
    setText(this.about, this.keys[this.key.value]);
    this.field.value = "";
    this.problem.say("");
  }

  #send() {
    this.problem.tell(this.change(`impair_${this.way.value}`, `${this.key.value}: ${this.field.value.trim()}`));
  }

  update(impaired) {
    const words = (key) => Object.entries(impaired[key]).map(([name, value]) => `${name} ${value}`).join(", ");
    const all = ["down", "up"].filter((way) => words(`impair_${way}`)).map((way) => `${way}: ${words(`impair_${way}`)}`);
    setText(this.now, all.join("; "));
  }
}

export class Controls {
  // `send(change, value, span)` changes the link; it throws what the lab refuses.
  constructor(link, accessPoints, impairments, send) {
    const press = (...words) => () => send(...words).catch(() => {});
    const change = (name, value) => send(name, value);
    this.rows = Object.keys(CONTROLS).map((name) => new Row(link, name, change));
    this.impairments = new Impairments(link, impairments, change);
    this.isDown = false;
    this.down = make("button", { type: "button", onclick: () => press(this.isDown ? "up" : "down")() }, "Down");
    this.endOutage = make("button", { type: "button", onclick: press("outage", "false") }, "End outage");
    const target = make("select", { "aria-label": `Access point of ${link}` }, make("option", { value: "next" }, "next"));
    target.append(...accessPoints.map((name) => make("option", { value: name }, name)));
    const handover = make("button", { type: "button", onclick: () => press("handover", target.value)() }, "Handover");
    const buttons = make(
      "div",
      { class: "buttons" },
      this.down,
      make("button", { type: "button", onclick: press("down", undefined, "3 s") }, "Down for 3 s"),
      this.endOutage,
      handover,
      ...(accessPoints.length > 1 ? [target] : []),
      make("button", { type: "button", onclick: press("restore") }, "As the scenario says"),
    );
    this.element = make("fieldset", { class: "controls" }, make("legend", {}, `Change ${link}`), ...this.rows.map((row) => row.element), this.impairments.element, buttons);
  }

  update({ values, impaired, by_hand, up, out }) {
    const changed = new Set(by_hand.map((words) => words.split(" ")[0]));
    for (const row of this.rows) row.update(values[row.name], changed.has(WORDS[row.name]));
    this.impairments.update(impaired);
    this.isDown = changed.has("down");
    this.endOutage.hidden = !(up && out);
    setText(this.down, this.isDown ? "Up again" : "Down");
  }
}
