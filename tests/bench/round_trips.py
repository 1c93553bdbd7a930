"""Section `round_trips`: measures how two clients of unequal round trips share a link, against theory.

Theory says rates are inverse to a power of the round trips, which include the mean wait in the queue:

- independent losses of equal ratio: 1 for Reno (Mathis et al., "The macroscopic behavior of the TCP
  congestion avoidance algorithm", 1997), 1/4 for CUBIC (RFC 9438 5.1: window ~ RTT^(3/4));
- losses of both at the same time: 2 for Reno (Lakshman and Madhow, "The performance of TCP/IP for
  networks with high bandwidth-delay products and random loss", 1997), and so for CUBIC where it is
  Reno-friendly (RFC 9438 4.3).

A full drop-tail queue is between both. The link has a jitter: without, the phase of packets decides who
loses (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import product

from bench.common import Bench, Done, Result, table, target

RTT_S = 0.04
BEGIN_S = 15.0
"""Slow start is over by then."""
SEEDS = 3
ADDED_MS = (20, 40, 80, 160)
AIM = 0.1
"""How far the logarithm of the rates' ratio may be from theory: three deviations of the median of three
runs. That of a run is 0.047: ten others (seeds 4 to 13) with random loss and 20 ms have powers of 1.035 ±
0.115."""


@dataclass(frozen=True)
class Sharing:
    """A kind of loss: the link's keys, the payload, and the power's limits by congestion control."""

    name: str
    keys: str
    rate_bps: float
    payload: str
    limits: dict[str, tuple[float, float]]


CASES = (
    Sharing(
        "full queue",
        "down: 20 Mbit/s, up: 20 Mbit/s, jitter: 1 ms, queue: 100 kB",
        20e6,
        "120 MB",
        {"reno": (1.0, 2.0), "cubic": (0.25, 2.0)},
    ),
    Sharing(
        "random loss",
        "down: 200 Mbit/s, up: 200 Mbit/s, loss: 0.2 %, queue: 1 MB",
        200e6,
        "200 MB",
        {"reno": (1.0, 1.0)},
    ),
)


def round_trips(bench: Bench) -> Result:
    """How two clients of unequal round trips share a link, against the powers of theory."""
    added_ms = ADDED_MS[1::2] if bench.quick else ADDED_MS
    seeds = range(1, 2 if bench.quick else SEEDS + 1)
    cases = [
        (case, control, added)
        for case in CASES
        for control, added in product(case.limits, added_ms)
    ]
    calls = [
        ("run", _file(bench, *one), "-a", "single-wifi", "--seed", seed)
        for one in cases
        for seed in seeds
    ]
    done = iter(bench.all("round trips", calls))
    shown = table("link", "control", "added\nms", "near %", "sum\nMbit/s", "power", "theory")
    result, is_well = {}, True
    for case, control, added in cases:
        runs = [_measured(next(done), case, added / 1e3) for _ in seeds]
        near, total_bps, power, log = (statistics.median(each) for each in zip(*runs, strict=True))
        low, high = case.limits[control]
        is_well = is_well and low - AIM / log <= power <= high + AIM / log
        result[f"{case.name}, {control}, {added} ms"] = {"near": near, "power": power}
        shares = (f"{near * 100:.1f}", f"{total_bps / 1e6:.1f}", f"{power:.2f}")
        shown.add_row(
            case.name,
            control,
            str(added),
            *shares,
            f"{low:g} to {high:g}" if low < high else f"{low:g}",
        )
    bench.say(f"\n[bold]Clients of unequal round trips[/bold] (medians over {len(seeds)} seeds)")
    bench.console.print(shown)
    bench.say("power of the round trips: " + target("rates within 10 % of theory", is_well))
    return result


def _file(bench: Bench, case: Sharing, control: str, added_ms: int) -> object:
    """Writes the scenario of a case."""
    name = f"{case.name}-{control}-{added_ms}".replace(" ", "-")
    path = bench.work / f"{name}.yaml"
    path.write_text(
        f"name: {name}\npayload: {{size: {case.payload}}}\n"
        f"links:\n  wifi: {{{case.keys}, rtt: {RTT_S * 1e3:g} ms}}\n"
        f"tcp: {{congestion_control: {{server: {control}}}}}\n"
        f"clients: [tested, {{added_rtt: {added_ms} ms}}]\n"
    )
    return path


def _measured(done: Done, case: Sharing, added_s: float) -> tuple[float, float, float, float]:
    """Returns the near client's share, the sum of both rates, the power of the round trips' ratio that
    is the rates', and that ratio's logarithm. Both clients transfer during the whole time."""
    both = [
        [
            (line["t_ns"] / 1e9, line["received_bytes"])
            for line in done.lines(file)
            if line["event"] == "sample" and line["t_ns"] > BEGIN_S * 1e9
        ]
        for file in ("client.jsonl", "client-2/client.jsonl")
    ]
    end_s = min(samples[-1][0] for samples in both)
    rates_bps = []
    for samples in both:
        times, received = zip(*(one for one in samples if one[0] <= end_s), strict=True)
        rates_bps.append((received[-1] - received[0]) * 8 / (times[-1] - times[0]))
    waiting = [
        one["queue_bytes"] for one in done.queue("wifi", "down") if BEGIN_S < one["t_s"] <= end_s
    ]
    near_s = RTT_S + statistics.mean(waiting) * 8 / case.rate_bps
    near, total_bps = rates_bps[0], sum(rates_bps)
    log = math.log((near_s + added_s) / near_s)
    return near / total_bps, total_bps, math.log(near / rates_bps[1]) / log, log
