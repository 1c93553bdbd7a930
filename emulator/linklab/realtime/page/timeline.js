// What the scenario has in store, the place where the run is, and what was done by hand.

import { make, makeSvg } from "./elements.js";
import { clock } from "./quantities.js";

const BEFORE_S = 30;
const AFTER_S = 60;
const ROW = 34;
const LEFT = 64;
const FOOT = 18;

export class Timeline {
  constructor(place) {
    this.place = place;
    this.rates = [];
  }

  begin(run) {
    this.run = run;
    this.links = Object.keys(run.links);
    this.rates = [];
    this.first = 0;
    this.marks = [];
  }

  add(plan, marks) {
    if (plan) {
      if (this.rates.length === 0) this.first = plan.first;
      this.rates.push(...plan.rates);
      const old = this.rates.length - 2 * (BEFORE_S + AFTER_S) / this.run.plan_step_s;
      if (old > 0) {
        this.rates.splice(0, old);
        this.first += old;
      }
    }
    this.marks.push(...marks.filter(({ kind }) => kind === "live"));
    this.marks.splice(0, this.marks.length - 200);
  }

  draw(nowS) {
    const width = Math.max(300, Math.floor(this.place.clientWidth));
    const begun = Math.max(0, nowS - BEFORE_S);
    const height = this.links.length * ROW + FOOT;
    const x = (s) => LEFT + ((s - begun) / (BEFORE_S + AFTER_S)) * (width - LEFT);
    const label = `From ${clock(begun)} to ${clock(begun + BEFORE_S + AFTER_S)}; now ${clock(nowS)}`;
    const picture = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    this.links.forEach((name, row) => picture.append(...this.#row(name, row, x, begun, width)));
    const step = width < 500 ? 30 : 10;
    for (let s = Math.ceil(begun / step) * step; x(s) <= width - 20; s += step) {
      picture.append(makeSvg("text", { x: x(s), y: height - 4, "text-anchor": "middle" }, `${s} s`));
    }
    picture.append(makeSvg("line", { class: "now", x1: x(nowS), x2: x(nowS), y1: 0, y2: height - FOOT }));
    this.place.replaceChildren(picture);
  }

  #row(name, row, x, begun, width) {
    const top = row * ROW + 3;
    const foot = top + ROW - 8;
    const most = Math.max(1, ...this.rates.map((rates) => rates[row]));
    const y = (rate) => foot - (rate / most) * (foot - top);
    const step = this.run.plan_step_s;
    const points = [];
    this.rates.forEach((rates, index) => {
      const s = (this.first + index) * step;
      if (s + step < begun || x(s) > width) return;
      const at = Math.max(LEFT, x(s)).toFixed(1);
      points.push(`${at},${y(rates[row]).toFixed(1)}`, `${Math.min(width, x(s + step)).toFixed(1)},${y(rates[row]).toFixed(1)}`);
    });
    const made = [makeSvg("text", { x: 0, y: foot - 8 }, name)];
    if (points.length) {
      const [start, end] = [points[0].split(",")[0], points.at(-1).split(",")[0]];
      made.push(makeSvg("polygon", { class: "plan", points: `${start},${foot} ${points.join(" ")} ${end},${foot}` }));
    }
    for (const event of this.run.events) {
      if (event.link !== name || event.at_s === null) continue;
      const [from, to] = [x(event.at_s), event.for_s === null ? width : x(event.at_s + event.for_s)];
      if (to < LEFT || from > width) continue;
      const left = Math.max(LEFT, from);
      const shown = event.for_s === null ? 3 : Math.max(3, Math.min(width, to) - left);
      if (event.for_s === null && from < LEFT) continue;
      made.push(makeSvg("rect", { class: "event", x: left, y: top, width: shown, height: foot - top }, makeSvg("title", {}, event.words)));
    }
    for (const mark of this.marks) {
      if (mark.link !== name || mark.t_s < begun) continue;
      const at = x(mark.t_s);
      made.push(makeSvg("path", { class: "hand", d: `M${at - 4},${top - 3}h8l-4,8z` }, makeSvg("title", {}, mark.detail)));
    }
    return made;
  }

  // The next events in words.
  ahead(nowS) {
    const timed = this.run.events.filter(({ at_s }) => at_s !== null && at_s > nowS);
    const awaited = this.run.events.filter(({ at_s }) => at_s === null);
    timed.sort((one, other) => one.at_s - other.at_s);
    const said = [
      ...timed.slice(0, 3).map((event) => `in ${Math.ceil(event.at_s - nowS)} s ${event.link}: ${event.words}`),
      ...awaited.slice(0, 3).map((event) => `after ${event.after} ${event.link}: ${event.words}`),
    ];
    const models = Object.entries(this.run.links).filter(([, link]) => link.models.length).map(([name, link]) => `${name} follows its ${link.models.join(", ")}`);
    const has = models.length ? `${models.join("; ")}. ` : "";
    return `${has}${said.length ? `Next: ${said.join("; ")}.` : "No further event."} Planned capacity is that of idle links.`;
  }
}
