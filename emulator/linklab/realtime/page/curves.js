// The curves of a link: what it could carry and what it carried, round trip, queue and loss.

import { make, setText } from "./elements.js";
import * as q from "./quantities.js";

const SHOWN_S = 60;
const KEPT = 480;
const QUIET = new Set(["rrc", "carriers", "next", "refused", "live-end"]);

const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// `series` are columns of a sample. `say` makes the caption of the newest values.
const CHARTS = [
  {
    title: "Capacity and use",
    height: 170,
    write: q.rate,
    series: [
      { column: 0, stroke: "--capacity", fill: "--fill", stepped: true },
      { column: 1, stroke: "--use", width: 2 },
    ],
    say: (now) => `${q.rate(now[1])} of ${q.rate(now[0])}`,
  },
  {
    title: "Round trip",
    height: 125,
    write: q.duration,
    series: [
      { column: 3, stroke: "--use", width: 1.5 },
      { column: 2, stroke: "--capacity" },
    ],
    say: (now) => `${q.duration(now[3])}, own ${q.duration(now[2])}`,
  },
  {
    title: "Queue",
    height: 125,
    write: q.size,
    series: [{ column: 4, stroke: "--use", width: 1.5, fill: "--soft" }],
    say: (now) => q.size(now[4]),
  },
  {
    title: "Loss",
    height: 125,
    write: q.share,
    series: [{ column: 5, stroke: "--mark", width: 1.5, stepped: true }],
    say: (now) => `${q.share(now[5])}, ${now[6]} packets now`,
  },
];

function options(chart, width, marks, span) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
  const font = "11px system-ui, sans-serif";
  return {
    width,
    height: chart.height,
    cursor: { show: false },
    legend: { show: false },
    scales: {
      x: { time: false, range: () => span() },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      { ...axis, font, size: 24, gap: 6, space: 60, values: (_, ticks) => ticks.map((s) => `${s} s`) },
      { ...axis, font, size: 66, gap: 4, space: 26, values: (_, ticks) => ticks.map((value) => chart.write(value)) },
    ],
    series: [
      {},
      ...chart.series.map((one) => ({
        stroke: colour(one.stroke),
        fill: one.fill && colour(one.fill),
        width: one.width ?? 1,
        points: { show: false },
        paths: one.stepped ? window.uPlot.paths.stepped({ align: -1 }) : undefined,
      })),
    ],
    hooks: { draw: [(plot) => drawMarks(plot, marks())] },
  };
}

function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.setLineDash([4, 3]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.t_s, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colour(mark.kind === "live" ? "--hand" : "--mark")();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export class Curves {
  constructor(name) {
    this.element = make("div", { class: "curves" });
    this.times = [];
    this.points = [];
    this.marks = [];
    this.charts = CHARTS.map((chart) => this.#figure(name, chart));
    this.observer = new ResizeObserver(() => this.#fit());
    this.observer.observe(this.element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.charts.forEach(({ plot }) => plot?.redraw(false));
    scheme.addEventListener("change", this.redraw);
    this.forget = () => scheme.removeEventListener("change", this.redraw);
  }

  #figure(name, chart) {
    const value = make("b");
    const box = make("div");
    const figure = make("figure", {}, make("figcaption", {}, `${chart.title}: `, value), box);
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${chart.title} of ${name} over the last minute`);
    this.element.append(figure);
    return { chart, value, box, plot: null };
  }

  #span() {
    const last = this.times.at(-1) ?? 0;
    return [Math.max(0, last - SHOWN_S), Math.max(SHOWN_S, last)];
  }

  #fit() {
    for (const one of this.charts) {
      const width = Math.floor(one.box.clientWidth);
      if (width < 40) continue;
      if (one.plot === null) {
        const made = options(one.chart, width, () => this.marks, () => this.#span());
        one.plot = new window.uPlot(made, this.#data(one.chart), one.box);
      } else if (one.plot.width !== width) one.plot.setSize({ width, height: one.chart.height });
    }
  }

  #data(chart) {
    return [this.times, ...chart.series.map(({ column }) => this.points.map((point) => point[column]))];
  }

  add(samples, marks) {
    for (const { t_s, point } of samples) {
      this.times.push(t_s);
      this.points.push(point);
    }
    this.times.splice(0, this.times.length - KEPT);
    this.points.splice(0, this.points.length - KEPT);
    this.marks.push(...marks.filter(({ kind }) => !QUIET.has(kind)));
    this.marks.splice(0, this.marks.length - KEPT);
  }

  draw() {
    const now = this.points.at(-1);
    for (const one of this.charts) {
      if (now) setText(one.value, one.chart.say(now));
      one.plot?.setData(this.#data(one.chart));
    }
  }

  close() {
    this.observer.disconnect();
    this.forget();
    for (const { plot } of this.charts) plot?.destroy();
  }
}
