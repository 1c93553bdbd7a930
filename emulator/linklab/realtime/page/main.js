// The lab's page: shows the lab's news, and sends the user's changes.

import { Controls } from "./controls.js";
import { Curves } from "./curves.js";
import { byId, make, setText, showText } from "./elements.js";
import { follow, scenario, send, setToken, takeToken } from "./lab.js";
import { clock } from "./quantities.js";
import { Timeline } from "./timeline.js";

const MOST_HAPPENED = 60;

const BUSY_BPS = 1e6; // Links that carry less, all together, do not keep a machine busy.

const timeline = new Timeline(byId("timeline"));
let links = {};
let run = null;
const byHand = new Map();
let isFrozen = false;
let isWrong = false; // The lab's last news were an error.
let isPaused = false;
let used = 0; // What all links carry at the newest sample, in bit/s.

function say(words, isBad = false) {
  byId("said").classList.toggle("bad", isBad);
  setText(byId("said"), words);
}

function sayOfSaving(words, isBad = false) {
  byId("saved").classList.toggle("bad", isBad);
  showText(byId("saved"), words);
}

async function ask(path, content) {
  try {
    say(await send(path, content));
  } catch (error) {
    byId("key").hidden = !error.isToken;
    if (error.isToken) byId("token").focus();
    say(error.message, true);
    throw error;
  }
}

function begin(about) {
  const links_before = run && JSON.stringify(run.links);
  run = about;
  timeline.begin(about);
  setText(byId("title"), about.title ? `${about.scenario}: ${about.title}` : about.scenario);
  document.title = `linklab: ${about.scenario}`;
  byId("happened").replaceChildren();
  if (!byId("name").value) byId("name").value = `${about.scenario.replace(/[^a-z0-9-]/g, "-").slice(0, 56)}-by-hand`;
  for (const { curves } of Object.values(links)) curves.close();
  const kept = links_before === JSON.stringify(about.links) ? links : {};
  links = {};
  for (const [name, { kind, access_points }] of Object.entries(about.links)) {
    const curves = new Curves(name);
    const controls = kept[name]?.controls ?? new Controls(name, access_points, about.keys, about.presets, (change) => ask(`/lab/links/${encodeURIComponent(name)}`, change));
    const state = make("span", { class: "state" });
    const title = `link-${name}`;
    const heading = make("h2", { id: title }, kind === name ? name : `${name} (${kind})`);
    const article = make("article", { class: "link", "aria-labelledby": title }, make("header", {}, heading, state), curves.element, controls.element);
    links[name] = { article, curves, controls, state };
  }
  byId("links").replaceChildren(...Object.values(links).map(({ article }) => article));
}

function happened(marks) {
  const list = byId("happened");
  for (const { t_s, link, kind, detail } of marks) {
    const words = kind === "live" ? `by hand: ${detail}` : `${kind === "live-end" ? "by hand, ended:" : kind.replaceAll("-", " ")} ${detail}`;
    list.prepend(make("li", { class: kind === "live" ? "hand" : "" }, make("span", { class: "dim" }, clock(t_s)), make("span", {}, link), make("span", {}, words)));
  }
  while (list.children.length > MOST_HAPPENED) list.lastChild.remove();
}

function linkState({ up, out, access_point, by_hand }) {
  const what = !up ? "down" : out ? "nothing passes" : access_point ? `up, at ${access_point}` : "up";
  return by_hand.length ? `${what}; by hand: ${by_hand.join(", ")}` : what;
}

function showNow(now) {
  for (const [name, link] of Object.entries(now.links)) {
    const { state, controls } = links[name];
    setText(state, linkState(link));
    state.classList.toggle("bad", !link.up || link.out);
    controls.update(link);
  }
  const late = byId("late");
  const advice = used > BUSY_BPS ? "Take lower rates." : "The links carry next to nothing, so other programs keep the machine busy.";
  if (!now.keeps_up && (late.hidden || !late.textContent.endsWith(advice))) {
    setText(late, `This machine cannot keep up: the lab is late by ${Math.round(now.lateness_s * 1000)} ms, or its core has no time left. The links are not what you set. ${advice}`);
  }
  late.hidden = now.keeps_up;
  byId("progress").closest(".going").hidden = now.progress === null;
  if (now.progress !== null) {
    byId("progress").value = now.progress;
    setText(byId("percent"), `${Math.floor(now.progress * 100)} %`);
  }
}

function showStatus(status) {
  const { now } = status;
  isPaused = status.paused;
  const pause = byId("pause");
  pause.setAttribute("aria-pressed", String(isPaused));
  pause.hidden = status.algorithms.length === 0;
  byId("choice").hidden = status.algorithms.length === 0;
  const select = byId("algorithm");
  if (select.options.length !== status.algorithms.length) {
    select.replaceChildren(...status.algorithms.map((name) => make("option", {}, name)));
  }
  const doing = status.running === null ? (isPaused ? "paused" : "between two downloads") : status.algorithms.length ? `${status.running} downloads ${run.size}` : "the links are there for others";
  const late = now ? `, late by ${Math.round(now.lateness_s * 1000)} ms` : "";
  setText(byId("what"), `${doing}; seed ${run.seed}, ${now ? clock(now.t_s) : "not begun"}, in the ${status.place}${late}`);
}

// A change by hand is also an event of the kind of the scenario's: one of them is enough.
function withoutEchoes(marks) {
  return marks.filter(({ t_s, link, kind }) => {
    if (kind === "live") byHand.set(link, t_s);
    return kind === "live" || kind === "handover" || byHand.get(link) !== t_s;
  });
}

function news({ run: about, samples = [], marks = [], plan, status, error }) {
  if (error || isWrong) say(error ?? "", true);
  isWrong = error !== undefined;
  if (isWrong) return;
  if (about) begin(about);
  if (run === null) return;
  const shown = withoutEchoes(marks);
  const names = Object.keys(links);
  names.forEach((name, index) => {
    const { curves } = links[name];
    curves.add(
      samples.map(({ t_s, links: points }) => ({ t_s, point: points[index] })),
      shown.filter(({ link }) => link === name),
    );
    if (!isFrozen) curves.draw();
  });
  if (samples.length) used = samples.at(-1).links.reduce((sum, point) => sum + point[1], 0);
  timeline.add(plan, shown);
  happened(shown);
  const { now } = status;
  if (now) showNow(now);
  showStatus(status);
  if (!isFrozen && now) {
    timeline.draw(now.t_s);
    setText(byId("store"), timeline.ahead(now.t_s));
  }
}

function lost(words) {
  byId("lost").hidden = words === null;
  if (words === null) return;
  setText(byId("lost"), words);
  byId("late").hidden = true;
}

const quietly = (asked) => asked.catch(() => {});
byId("next").addEventListener("click", () => quietly(ask("/lab", { next: byId("algorithm").value })));
byId("pause").addEventListener("click", () => quietly(ask("/lab", { paused: !isPaused })));
byId("restore").addEventListener("click", () => quietly(ask("/lab", { restore: true })));
byId("freeze").addEventListener("click", (event) => {
  isFrozen = !isFrozen;
  event.target.setAttribute("aria-pressed", String(isFrozen));
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value.trim());
  byId("token").value = "";
  byId("key").hidden = true;
  say("the token is used for the next change");
});
byId("save").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = byId("name").value.trim();
  try {
    const address = URL.createObjectURL(await scenario(name, byId("from").value.trim()));
    make("a", { href: address, download: `${name}.yaml` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    sayOfSaving(`saved ${name}.yaml: linklab run ${name}.yaml`);
  } catch (error) {
    sayOfSaving(error.message, true);
  }
});

byId("key").hidden = takeToken();
follow(news, lost);
