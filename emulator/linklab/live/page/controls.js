// The controls of a link: a slider and a field for each value, and buttons.

import { make, setText } from "./elements.js";
import { CONTROLS, STEPS } from "./quantities.js";

const WAIT_MS = 200; // A key that is held moves a slider often.

// The first words of what the lab says is by hand, by control.
const WORDS = { rate: "rate", uplink: "uplink", rtt: "RTT", jitter: "jitter", loss: "loss", queue: "queue" };

const LONGEST = 12; // Rates of traces have more digits than a field can show.

class Row {
  constructor(link, name, change) {
    const { label, scale, write } = CONTROLS[name];
    this.name = name;
    this.change = change;
    this.scale = scale;
    this.write = write;
    this.shown = "";
    this.timer = 0;
    const id = `${link}-${name}`;
    this.slider = make("input", {
      type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${label} of ${link}`,
      oninput: () => this.#slide(write(scale.value(Number(this.slider.value)))),
    });
    this.field = make("input", {
      id, autocomplete: "off", spellcheck: "false",
      onchange: () => this.#send(),
      onkeydown: (event) => event.key === "Escape" && this.#show(this.shown),
    });
    this.problem = make("span", { class: "problem", id: `${id}-problem`, role: "alert" });
    this.element = make("div", { class: "row" }, make("label", { for: id }, label), this.slider, this.field, this.problem);
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
    try {
      await this.change(this.name, wanted);
      this.#say("");
      this.shown = wanted;
    } catch (error) {
      this.#say(error.isToken ? "" : error.message);
    }
  }

  #say(problem) {
    setText(this.problem, problem);
    this.field.setAttribute("aria-invalid", String(problem !== ""));
    if (problem) this.field.setAttribute("aria-describedby", this.problem.id);
    else this.field.removeAttribute("aria-describedby");
  }

  #show(text) {
    this.field.value = text;
    this.#say("");
  }

  // Shows what the link is, unless somebody is changing it.
  update([value, text], isByHand) {
    this.element.classList.toggle("hand", isByHand);
    const isBusy = this.timer !== 0 || document.activeElement === this.field || document.activeElement === this.slider;
    if (isBusy || this.field.getAttribute("aria-invalid") === "true") return;
    this.shown = text.length > LONGEST ? this.write(value) : text;
    if (this.field.value !== this.shown) this.field.value = this.shown;
    const step = String(this.scale.step(value));
    if (this.slider.value !== step) this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", this.shown);
  }
}

export class Controls {
  // `send(change, value, span)` changes the link; it throws what the lab refuses.
  constructor(link, accessPoints, send) {
    const press = (...words) => () => send(...words).catch(() => {});
    const change = (name, value) => send(name, value);
    this.rows = Object.keys(CONTROLS).map((name) => new Row(link, name, change));
    this.isDown = false;
    this.down = make("button", { type: "button", onclick: () => press(this.isDown ? "up" : "down")() }, "Down");
    const target = make("select", { "aria-label": `Access point of ${link}` }, make("option", { value: "next" }, "next"));
    target.append(...accessPoints.map((name) => make("option", { value: name }, name)));
    const handover = make("button", { type: "button", onclick: () => press("handover", target.value)() }, "Handover");
    const buttons = make(
      "div",
      { class: "buttons" },
      this.down,
      make("button", { type: "button", onclick: press("down", undefined, "3 s") }, "Down for 3 s"),
      handover,
      ...(accessPoints.length > 1 ? [target] : []),
      make("button", { type: "button", onclick: press("restore") }, "As the scenario says"),
    );
    this.element = make("fieldset", { class: "controls" }, make("legend", {}, `Change ${link}`), ...this.rows.map((row) => row.element), buttons);
  }

  update({ values, by_hand }) {
    const changed = new Set(by_hand.map((words) => words.split(" ")[0]));
    for (const row of this.rows) row.update(values[row.name], changed.has(WORDS[row.name]));
    this.isDown = changed.has("down");
    setText(this.down, this.isDown ? "Up again" : "Down");
  }
}
