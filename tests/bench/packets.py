"""Section `packets`: compares each packet's time on a link with Lindley's recursion (`lindley.py`)."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from linklab import scenario as scenarios
from linklab.core.ip_family import in_family
from linklab.core.link_state import DIRECTIONS, Direction
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths

from bench.common import PROBES, REPOSITORY, Bench, Result, table, target
from bench.lindley import Rates, departures_ns

AIM_US = 2.0
LOADS = (0.3, 0.6, 0.9)
FRAMES_BYTES = (98, 590, 1514)
RATES_MBPS = (0.1, 1.0, 10.0, 100.0, 300.0)
KINDS = {"constant": 0, "20 ms": 20, "100 ms": 100, "1 s": 1000, "traced": 100}
"""How rates change, and every how many ms."""
RTTS_MS = (1, 5, 10, 30, 60, 100, 200, 600)
WINDOWS = 3
"""The changes of a rate around which packets are sent, if sending all the time would be too many."""

START_S = 1.0
CALL_FRAME_BYTES, CALL_PERIOD_S = 214, 0.02
"""G.711 in RTP: 160 bytes every 20 ms (RFC 3551), and headers."""

SAMPLES = ("10 ms", "1 s", "10 s")

Frames = list[tuple[int, int, int | str]]
"""What passed a place: time in ns, bytes, and number in the plan or digest."""


class Planned(NamedTuple):
    """A packet to send: time since the scenario began, index of the link, and bytes of the frame. `load`
    only names the part of the plan that it belongs to."""

    t_ns: int
    link: int
    direction: Direction
    frame_bytes: int
    load: float = 0.0


@dataclass(frozen=True)
class Packet:
    """A packet of the plan that passed its link. Times are in ns since the scenario began.

    It came to the access node's queue at `came_ns`. It left at `left_ns`, and by the recursion at
    `expected_ns`. Its host sent it at `sent_ns`, and the other one received it at `received_ns`, None
    if the link lost it elsewhere.
    """

    number: int
    came_ns: int
    left_ns: int
    expected_ns: int
    sent_ns: int
    received_ns: int | None

    @property
    def error_us(self) -> float:
        """How much later it left the queue than it should have."""
        return (self.left_ns - self.expected_ns) / 1e3

    def end_to_end_error_us(self, delay_ns: int) -> float:
        """How much later it was received than it should have been, over a constant delay."""
        assert self.received_ns is not None
        took_ns = self.received_ns - self.sent_ns
        return (took_ns - (self.expected_ns - self.came_ns) - delay_ns) / 1e3

    @property
    def waits_ms(self) -> tuple[float, float]:
        """Its time in the queue and on the air: the measured one, and the recursion's."""
        return (self.left_ns - self.came_ns) / 1e6, (self.expected_ns - self.came_ns) / 1e6


@dataclass(frozen=True)
class Judged:
    """The packets of a link's direction, and how many were sent but not delivered."""

    packets: list[Packet]
    lost: int


def probe(file: Path, work: Path, packets: Sequence[Planned]) -> tuple[object, ...]:
    """Returns the words of `linklab` that send these packets over a scenario's links. Numbers count
    them in this order, which is that of time."""
    links = []
    for link in link_paths(scenarios.load(file).links).values():
        access, family = link.accesses[0], min(link.families)
        links.append(
            {
                "device": link.device,
                "near": access.down.interface,
                "far": access.up.interface,
                "end": link.server.interface,
                "address": in_family(SERVER_ADDRESS, family),
            }
        )
    plan = work / f"{file.stem}.plan.json"
    plan.write_text(json.dumps({"links": links, "packets": packets}))
    return ("exec", file, "--", "python3", PROBES / "packets.py", plan)


def recorded_rates(lines: Iterable[dict[str, Any]], link: str, direction: str) -> Rates:
    """Returns a link's rate as `links.jsonl` has it, 0 while it holds or loses everything."""
    changes = {}
    for line in lines:
        if line["link"] == link:
            loses = not line["up"] or line["blackout"]
            stops = loses or line[f"hold_{direction}"]
            rate_bps = 0 if stops else line[f"{direction}_rate_bps"]
            changes[round(line["t_s"] * 1e9)] = rate_bps
    return Rates(list(changes.items()))


def judge(run_dir: Path, *, is_fifo: bool = True) -> dict[tuple[str, str], Judged]:
    """Returns the packets of each link and direction of a run of the probe.

    The queue is first in, first out, or the recursion takes the order in which packets left.
    """
    states = _lines(run_dir / "links.jsonl")
    names = list(dict.fromkeys(line["link"] for line in states))
    passed: dict[tuple[str, str, bool], Frames] = defaultdict(list)
    for link, place, left, t_ns, size, number in _lines(run_dir / "packets.jsonl"):
        passed[names[link], place, left].append((t_ns, size, number))
    found: dict[tuple[str, str], Judged] = {}
    for link in names:
        for direction in DIRECTIONS:
            path = ("device", "near", "far", "end")
            if direction == "down":
                path = path[::-1]
            frames = [passed[link, place, number in (0, 2)] for number, place in enumerate(path)]
            rates = recorded_rates(states, link, direction)
            found[link, direction] = _judge(frames, rates, is_fifo=is_fifo)
    return found


def _judge(places: Sequence[Frames], rates: Rates, *, is_fifo: bool) -> Judged:
    """Matches what came to the queue with what left it. A frame that the access node itself made
    only leaves, so it is taken to come as it leaves."""
    sent, came, left, received = places
    arrivals: dict[int | str, deque[int]] = defaultdict(deque)
    for t_ns, _, number in came:
        arrivals[number].append(t_ns)
    served = [
        (arrivals[number].popleft() if arrivals[number] else t_ns, t_ns, size, number)
        for t_ns, size, number in left
    ]
    if is_fifo:
        place = {number: at for at, (_, _, number) in enumerate(came)}
        served.sort(key=lambda one: place.get(one[3], -1))
    expected = departures_ns(((came_ns, size) for came_ns, _, size, _ in served), rates)
    starts = {number: t_ns for t_ns, _, number in sent}
    ends = {number: t_ns for t_ns, _, number in reversed(received)}
    packets = [
        Packet(number, came_ns, left_ns, expected_ns, starts[number], ends.get(number))
        for (came_ns, left_ns, _, number), expected_ns in zip(served, expected, strict=True)
        if isinstance(number, int)
    ]
    planned = sum(isinstance(number, int) for number in starts)
    return Judged(packets, planned - sum(one.received_ns is not None for one in packets))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def poisson(
    dice: random.Random, count: int, per_s: float, step_s: float, start_s: float
) -> Iterator[float]:
    """Yields times of a Poisson process after `start_s`. If it would end before `WINDOWS` changes of the
    rate, which come every `step_s`, it runs only around these."""
    window_s = count / per_s / WINDOWS
    first_s = (start_s // step_s + 2) * step_s if window_s < step_s else 0.0
    at_s = 0.0
    for _ in range(count):
        at_s += dice.expovariate(per_s)
        number, within_s = divmod(at_s, window_s)
        around_s = first_s + number * step_s + within_s - window_s / 2
        yield around_s if first_s else start_s + at_s


@dataclass(frozen=True)
class Link:
    """A link of the grid: its mean rate, the time between changes, and its settings in YAML."""

    name: str
    rate_bps: float
    step_s: float
    rtt_ms: int
    settings: str

    def packets(self, dice: random.Random, number: int, count: int) -> Iterator[Planned]:
        """Yields packets of each load and size, one after the other, in both directions."""
        start_s = START_S
        for load in LOADS:
            for size in FRAMES_BYTES:
                per_s = load * self.rate_bps / 8 / size
                times_s = {
                    way: list(poisson(dice, count, per_s, self.step_s, start_s))
                    for way in DIRECTIONS
                }
                for way in DIRECTIONS:
                    for t_s in times_s[way]:
                        yield Planned(round(t_s * 1e9), number, way, size, load)
                start_s = max(times[-1] for times in times_s.values())


def _grid(bench: Bench) -> Iterator[Link]:
    """Yields links with constant rates, with random ones in steps, and with a shipped trace."""
    dice = random.Random(47)
    rtts_ms = itertools.cycle(RTTS_MS)
    for mbps in RATES_MBPS[1::2] if bench.quick else RATES_MBPS:
        for kind, step_ms in KINDS.items():
            step_s = step_ms / 1e3
            trace = ""
            if kind == "traced":
                trace = ", trace: {file: lte-driving}"
            elif step_ms:
                file = bench.work / f"steps-{mbps:g}-{step_ms}.csv"
                rows = [
                    f"{number * step_s:g},{dice.uniform(0.4, 1.6) * mbps:.6f},"
                    f"{dice.uniform(0.4, 1.6) * mbps:.6f}\n"
                    for number in range(50)
                ]
                file.write_text("".join(["t,down_mbit,up_mbit\n", *rows]))
                trace = f", trace: {{file: {file}, rate: recorded}}"
            rtt_ms = next(rtts_ms)
            settings = f"down: {mbps:g} Mbit/s, up: {mbps:g} Mbit/s, rtt: {rtt_ms} ms, queue: 10 MB"
            name = f"{mbps:g}, {kind}"
            yield Link(name, mbps * 1e6, step_s, rtt_ms, settings + trace)


def packets(bench: Bench) -> Result:
    """Each packet's time on a link against Lindley's recursion over the recorded rates."""
    return {"poisson": _poisson(bench), "calls": _calls(bench), "samples": _samples(bench)}


def _poisson(bench: Bench) -> Result:
    """Sends Poisson traffic over pairs of links."""
    links = list(_grid(bench))
    pairs = [links[at : at + 2] for at in range(0, len(links), 2)]
    dice = random.Random(1)
    plans, calls = [], []
    for number, pair in enumerate(pairs):
        plan = sorted(
            packet
            for at, link in enumerate(pair)
            for packet in link.packets(dice, at, _count(bench, link.rate_bps))
        )
        wifi, lte = pair[0].settings, pair[-1].settings
        file = bench.links(f"packets-{number}", wifi=wifi, lte=lte)
        plans.append(plan)
        calls.append(probe(file, bench.work, plan))
    rows = []
    for pair, plan, done in zip(pairs, plans, bench.all("packets", calls), strict=True):
        judged = judge(done.run_dir)
        for number, link in enumerate(pair):
            name = ("wifi", "lte")[number]
            both = {direction: judged[name, direction] for direction in DIRECTIONS}
            rows.append(_row(link, plan, both))
    sizes = [f"{load:g}\n{size}" for load in LOADS for size in FRAMES_BYTES]
    shown = table("load\nframe B", *sizes, "> 2 µs\n%", gap=1)
    for row in rows:
        worst = [max(cell, key=abs) for cell in row["worst_us"].values()]
        shown.add_row(row["link"], *map(_figure, worst), f"{row['beyond'] * 100:.0f}")
    bench.say("\n[bold]Poisson traffic[/bold] (worst error of both directions in µs; m: ms)")
    bench.say("links: Mbit/s, time between changes of the rate")
    bench.console.print(shown)
    worst_us = max(
        abs(error) for row in rows for cell in row["worst_us"].values() for error in cell
    )
    lost = sum(row["lost"] for row in rows)
    bench.say(
        f"{sum(row['packets'] for row in rows)} packets, worst {worst_us:.2f} µs; "
        + target("2 µs", worst_us <= AIM_US)
        + f"; {lost} lost; "
        + target("0", not lost)
    )
    return {"rows": rows, "worst_us": worst_us}


def _count(bench: Bench, rate_bps: float) -> int:
    """Returns the packets of a load and size, fewer on slow links, where they take long."""
    return round(min(400.0, 40 * math.sqrt(rate_bps / 1e5))) // (4 if bench.quick else 1)


def _row(link: Link, plan: Sequence[Planned], both: dict[Direction, Judged]) -> Result:
    """Returns the worst errors of a link by load and size, and the share of packets beyond the aim."""
    errors: dict[tuple[float, int, Direction], list[float]] = defaultdict(list)
    for direction, judged in both.items():
        for packet in judged.packets:
            planned = plan[packet.number]
            error_us = packet.end_to_end_error_us(link.rtt_ms * 500_000)
            errors[planned.load, planned.frame_bytes, direction].append(error_us)
    flat = [error for cell in errors.values() for error in cell]
    return {
        "link": link.name,
        "packets": len(flat),
        "lost": sum(judged.lost for judged in both.values()),
        "beyond": statistics.fmean(abs(error) > AIM_US for error in flat),
        "worst_us": {
            f"{load:g}, {size} B": [max(errors[load, size, way], key=abs) for way in DIRECTIONS]
            for load in LOADS
            for size in FRAMES_BYTES
        },
    }


def _figure(error_us: float) -> str:
    """Formats an error in µs, or ms, in at most five places."""
    size = abs(error_us)
    if size < 9999.5:
        return f"{error_us:+.1f}" if size < 99.95 else f"{error_us:+.0f}"
    return f"{error_us / 1e3:+.0f}m"


def _call(link: int, seconds: float) -> Iterator[Planned]:
    """Yields the packets of a call."""
    for number in range(round(seconds / CALL_PERIOD_S)):
        t_ns = round((START_S + number * CALL_PERIOD_S) * 1e9)
        for direction in DIRECTIONS:
            yield Planned(t_ns, link, direction, CALL_FRAME_BYTES)


def _calls(bench: Bench) -> Result:
    """Calls over every link of every scenario of today, beside the traffic that it has."""
    files = sorted((REPOSITORY / "profiles/scenarios/today").glob("*.yaml"))
    files = files[::5] if bench.quick else files
    calls = []
    for file in files:
        links = range(len(scenarios.load(file).links))
        plan = sorted(packet for link in links for packet in _call(link, 10 if bench.quick else 45))
        calls.append(probe(file, bench.work, plan))
    shown = table("scenario", "packets", "mean ms", "p95 ms", "worst ms", "error µs", gap=1)
    rows: list[Result] = []
    for file, done in zip(files, bench.all("calls", calls), strict=True):
        found = [one for way in judge(done.run_dir, is_fifo=False).values() for one in way.packets]
        waits = list(zip(*(one.waits_ms for one in found), strict=True))
        figures = {
            "mean_ms": [statistics.fmean(part) for part in waits],
            "p95_ms": [statistics.quantiles(part, n=20)[-1] for part in waits],
            "worst_ms": [max(part) for part in waits],
        }
        error_us = max((one.error_us for one in found), key=abs)
        rows.append({"scenario": file.stem, "packets": len(found), "error_us": error_us, **figures})
        pairs = (f"{seen:.2f}/{right:.2f}" for seen, right in figures.values())
        shown.add_row(file.stem, str(len(found)), *pairs, _figure(error_us))
    bench.say("\n[bold]A call[/bold] (UDP, 50/s both ways on all links; wait and own time)")
    bench.say("measured / by the recursion; error of the worst packet")
    bench.console.print(shown)
    worst_us = max(abs(row["error_us"]) for row in rows)
    bench.say(f"worst {worst_us:.2f} µs; " + target("2 µs", worst_us <= AIM_US))
    return {"rows": rows, "worst_us": worst_us}


def _samples(bench: Bench) -> Result:
    """Sends the same packets with other recording intervals. They must not move."""
    dice = random.Random(2)
    rows = [f"{number},{dice.uniform(0.05, 0.2):.4f}\n" for number in range(20)]
    trace = bench.work / "samples.csv"
    trace.write_text("".join(["t,down_mbit\n", *rows]))
    slow = f"down: 1 Mbit/s, up: 1 Mbit/s, rtt: 20 ms, trace: {{file: {trace}, rate: recorded}}"
    fast = "down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms"
    plan = sorted(
        Planned(round(t_s * 1e9), link, direction, 98)
        for link, per_s in enumerate((60, 600))
        for direction in DIRECTIONS
        for t_s in poisson(dice, per_s * 10, per_s, 0, START_S)
    )
    calls = []
    for sample in SAMPLES:
        name = f"sample-{sample.replace(' ', '')}"
        file = bench.links(name, wifi=slow, lte=fast, more=f"sample: {sample}\n")
        calls.append(probe(file, bench.work, plan))
    runs = [
        {
            (*way, one.number): (one.sent_ns, one.came_ns, one.left_ns, one.received_ns)
            for way, judged in judge(done.run_dir).items()
            for one in judged.packets
        }
        for done in bench.all("samples", calls)
    ]
    moved = {
        key: max(
            abs((a or 0) - (b or 0))
            for run in runs
            for a, b in zip(run.get(key, ()), times, strict=False)
        )
        for key, times in runs[0].items()
    }
    same = runs[1:] == runs[:-1]
    bench.say(f"\n[bold]sample: {', '.join(SAMPLES)}[/bold] (the same {len(plan)} packets)")
    bench.say(
        f"{sum(map(bool, moved.values()))} packets moved, by at most {max(moved.values())} ns; "
        + target("none", same)
    )
    return {"same": same, "moved_ns": max(moved.values())}
