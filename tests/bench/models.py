"""Section `models`: checks what link models promise, with paced UDP from server to client."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from linklab.core.frames import FRAME_BYTES
from linklab.models.roaming import HANDOVERS
from linklab.traces import library, plain

from bench.common import PROBES, Bench, Done, Result, percent, table, target

BIN_S = 0.1
IDLE = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 30 ms"

TRACE_AIM = 0.01
REAL_AIM = 0.03
HANDOVER_AIM_S = 0.005
PLAYER_AIM = 0.10
Z_99 = 2.576
"""The normal distribution's quantile: 99 % lie within this many standard errors."""


def models(bench: Bench) -> Result:
    """Traces, bursts of loss, carriers and handovers, against the scenario's values."""
    return {
        "trace": _traces(bench),
        "loss": _losses(bench),
        "jitter": _jitter(bench),
        "carriers": _carriers(bench),
        "handover": _handovers(bench),
        "player": _player(bench),
    }


def _arrivals(done: Done) -> tuple[int, list[tuple[int, int]]]:
    """Returns the number of packets sent, and number and nanoseconds of each that arrived."""
    report = json.loads((done.run_dir / "arrivals.json").read_text())
    return report["sent"], report["arrivals"]


def _udp(file: Path, device: str, rate_bps: float, seconds: float, *options: str) -> list[object]:
    """Returns the call that receives UDP over one link from the scenario's start."""
    probe = PROBES / "downlink.py"
    return ["exec", file, *options, "--", "python3", probe, device, rate_bps, seconds, 0.2]


def _binned(arrivals: Sequence[tuple[int, int]], from_s: float, to_s: float) -> list[int]:
    """Returns the frame bytes that arrived in each tenth of a second."""
    first = round(from_s / BIN_S)
    bins = [0] * (round(to_s / BIN_S) - first)
    for _, t_ns in arrivals:
        number = int(t_ns / 1e9 / BIN_S) - first
        if 0 <= number < len(bins):
            bins[number] += FRAME_BYTES
    return bins


def _sawtooth(bench: Bench, seconds: float, low: float, high: float) -> tuple[Path, list[float]]:
    """Writes a trace that changes every 100 ms between two rates in Mbit/s, from a seed."""
    draw = random.Random(7)
    count = round(seconds / BIN_S)
    rates = [round(draw.uniform(low, high), 3) for _ in range(count)]
    path = bench.work / f"sawtooth-{seconds:g}-{high:g}.csv"
    lines = [f"{number * BIN_S:.1f},{rate}" for number, rate in enumerate(rates)]
    path.write_text("t,down_mbit\n" + "\n".join(lines) + f"\n# end: {seconds:g} s\n")
    return path, rates


def _shipped(name: str, seconds: float) -> tuple[Path, list[float]]:
    """Returns a trace of profiles/traces, as recorded."""
    path = library.find(name)
    rates = [sample.down_bps / 1e6 for sample in plain.load(path) if sample.down_bps is not None]
    return path, rates[: round(seconds / BIN_S)]


def _traces(bench: Bench) -> Result:
    """Plays a trace on a saturated LTE link, and compares each tenth of a second."""
    minutes = 60.0 if bench.quick else 600.0
    plans = [
        ("virtual", "10-80 Mbit/s at random", 20.0, *_sawtooth(bench, 20.0, 10.0, 80.0)),
        ("virtual", "lte-static-good", 20.0, *_shipped("lte-static-good", 20.0)),
        ("virtual", "lte-static-poor", minutes, *_shipped("lte-static-poor", minutes)),
        ("virtual", "lte-driving", 60.0, *_shipped("lte-driving", 60.0)),
        ("virtual", "1-6 Mbit/s at random", 60.0, *_sawtooth(bench, 60.0, 1.0, 6.0)),
        ("real", "5-20 Mbit/s at random", 10.0, *_sawtooth(bench, 10.0, 5.0, 20.0)),
    ]
    shown = table(
        "clock",
        "trace",
        "s",
        "bins inside %",
        "worst %",
        "packets",
        "total %",
        "late µs",
        left=2,
        gap=1,
    )
    rows = [_followed(bench, *plan) for plan in plans]
    for row in rows:
        shown.add_row(
            row["clock"],
            row["trace"],
            f"{row['seconds']:g}",
            f"{row['inside'] * 100:.1f}",
            percent(row["worst_bin"], 1),
            f"{row['worst_packets']:.1f}",
            percent(row["total"], 3),
            f"{row['late_s'] * 1e6:.1f}",
        )
    bench.say("\n[bold]Trace following[/bold] (saturated by UDP; a bin is 100 ms)")
    bench.say("inside: within 1 % or one packet; late: the worst change, and no later at the end")
    bench.console.print(shown)
    fast = rows[:2]
    bench.say(
        "above 10 Mbit/s every bin "
        + target("1 % or one packet", all(r["inside"] == 1 for r in fast))
        + "; real: total "
        + target("3 %", abs(rows[-1]["total"]) <= REAL_AIM)
    )
    drift_s = rows[2]["late_at_end_s"] - rows[2]["late_at_start_s"]
    bench.say(f"drift after {minutes / 60:g} min: {drift_s * 1e6:.1f} µs")
    return {"rows": rows}


def _followed(
    bench: Bench, clock: str, name: str, seconds: float, trace: Path, rates: list[float]
) -> Result:
    high = max(rates)
    file = bench.links(
        f"trace-{clock}-{trace.stem}",
        wifi=IDLE,
        lte=f"down: {high:.3f} Mbit/s, up: 10 Mbit/s, rtt: 20 ms, queue: 2 MB, "
        f"trace: {{file: {trace}, rate: recorded, end: hold}}",
    )
    (done,) = bench.all(
        name, [_udp(file, "rmnet0", high * 1.1e6, seconds, "--clock", clock, "--timeout", "900")]
    )
    _, arrivals = _arrivals(done)
    begin = 1.0
    seen = _binned(arrivals, begin, seconds)
    expected = [rate * 1e6 * BIN_S / 8 for rate in rates[round(begin / BIN_S) :]]
    errors = [
        (got - want) / max(want, FRAME_BYTES) for got, want in zip(seen, expected, strict=True)
    ]
    packets = [abs(got - want) / FRAME_BYTES for got, want in zip(seen, expected, strict=True)]
    states = done.lines("links.jsonl")
    return {
        "clock": clock,
        "trace": name,
        "seconds": seconds,
        "inside": statistics.mean(
            abs(error) <= TRACE_AIM or off <= 1 for error, off in zip(errors, packets, strict=True)
        ),
        "worst_bin": max(errors, key=abs),
        "worst_packets": max(packets),
        "total": sum(seen) / sum(expected) - 1,
        "late_s": max(line["late_s"] for line in states),
        "late_at_start_s": states[2]["late_s"],
        "late_at_end_s": states[-1]["late_s"],
    }


def _losses(bench: Bench) -> Result:
    """Compares share and mean burst of Gilbert-Elliott losses with the 99 % confidence interval."""
    plans = [(0.001, 2.0), (0.01, 2.0), (0.05, 4.0), (0.01, 1.0)]
    seconds = 30 if bench.quick else 60
    rate_bps = 30e6
    calls = [
        _udp(
            bench.links(
                f"loss-{number}",
                lte=IDLE,
                wifi=f"down: 50 Mbit/s, up: 10 Mbit/s, rtt: 10 ms, loss: {ratio * 100:g} %, "
                f"loss_burst: {burst:g}",
            ),
            "wlan0",
            rate_bps,
            seconds,
        )
        for number, (ratio, burst) in enumerate(plans)
    ]
    shown = table("loss %", "burst", "lost %", "99 % interval", "mean burst", "99 % interval", "")
    rows = []
    for (ratio, burst), done in zip(plans, bench.all("loss", calls), strict=True):
        sent, arrivals = _arrivals(done)
        bursts = _bursts(sent, [number for number, _ in arrivals])
        lost = sum(bursts)
        mean = lost / len(bursts) if bursts else math.nan
        # A burst ends at each packet with the probability 1/burst. Single losses have no followers.
        stated_burst = burst if burst > 1 else 1 / (1 - ratio)
        sd_burst = math.sqrt(max(stated_burst * (stated_burst - 1), 0.0))
        # Each burst counts as one sample of a geometric length.
        expected = sent * ratio
        sd_lost = math.sqrt(expected * (2 * stated_burst - 1))
        low, high = ((expected + sign * Z_99 * sd_lost) / sent for sign in (-1, 1))
        room = Z_99 * sd_burst / math.sqrt(len(bursts))
        inside = low <= lost / sent <= high and abs(mean - stated_burst) <= max(room, 1e-3)
        rows.append(
            {
                "stated_ratio": ratio,
                "stated_burst": burst,
                "ratio": lost / sent,
                "burst": mean,
                "sent": sent,
                "bursts": len(bursts),
                "inside": inside,
            }
        )
        shown.add_row(
            f"{ratio * 100:g}",
            f"{burst:g}",
            f"{lost / sent * 100:.3f}",
            f"{low * 100:.3f}-{high * 100:.3f}",
            f"{mean:.3f}",
            f"{stated_burst - room:.3f}-{stated_burst + room:.3f}",
            "in" if inside else "OUT",
        )
    bench.say("\n[bold]Losses in bursts[/bold]")
    bench.console.print(shown)
    bench.say(target("99 % confidence intervals", all(row["inside"] for row in rows)))
    return {"rows": rows}


def _bursts(sent: int, arrived: Sequence[int]) -> list[int]:
    """Returns the lengths of the bursts of losses."""
    edges = [-1, *arrived, sent]
    return [after - before - 1 for before, after in pairwise(edges) if after - before > 1]


def _jitter(bench: Bench) -> Result:
    """Measures the one-way delay of sparse packets over a link with jitter."""
    file = bench.links(
        "jitter", lte=IDLE, wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 40 ms, jitter: 5 ms"
    )
    (done,) = bench.all("jitter", [_udp(file, "wlan0", 1e6, 30)])
    _, arrivals = _arrivals(done)
    # Frames leave at number / rate, in bursts at whole milliseconds.
    frames_per_s = 1e6 / 8 / FRAME_BYTES
    delays_ms = [
        t_ns / 1e6 - (200 + math.floor(number / frames_per_s * 1e3)) for number, t_ns in arrivals
    ]
    quantiles = statistics.quantiles(delays_ms, n=20)
    report = {
        "mean_ms": statistics.mean(delays_ms),
        "sd_ms": statistics.stdev(delays_ms),
        "p5_ms": quantiles[0],
        "median_ms": quantiles[9],
        "p95_ms": quantiles[18],
        "packets": len(delays_ms),
    }
    bench.say("\n[bold]Jitter[/bold] (20 ms one way, deviation 5 ms, in order)")
    bench.say(
        f"delay: mean {report['mean_ms']:.2f} ms, sd {report['sd_ms']:.2f}, "
        f"5 % {report['p5_ms']:.2f}, median {report['median_ms']:.2f}, "
        f"95 % {report['p95_ms']:.2f}; {len(delays_ms)} packets"
    )
    return report


def _carriers(bench: Bench) -> Result:
    """Measures carrier aggregation with a paced flow, a saturating one, and idleness."""
    lte = (
        "down: 60 Mbit/s, up: 10 Mbit/s, rtt: 50 ms, queue: 10 MB, "
        "carriers: {count: 3, first: 40 %, delay: 2 s, sigma: 0, slow: 0 %}"
    )
    file = bench.links("carriers", wifi=IDLE, lte=lte)
    probe = PROBES / "downlink.py"
    again = f"python3 {probe} rmnet0 70e6 4 0.2 && sleep 2 && python3 {probe} rmnet0 70e6 1 0.2"
    paced, saturated, idle = bench.all(
        "carriers",
        [
            _udp(file, "rmnet0", 20e6, 6),
            _udp(file, "rmnet0", 70e6, 6),
            ["exec", file, "--", "sh", "-c", again],
        ],
    )

    def steps(done: Done) -> list[tuple[float, int]]:
        return [
            (line["t_s"], int(line["detail"]))
            for line in done.lines("events.jsonl")
            if line["kind"] == "carriers"
        ]

    ramp = steps(saturated)
    # Traffic arrives from 0.2 s + 25 ms on; 9 kB are queued for 50 ms, then 2 s in two steps.
    loaded_s = 0.225
    expected = [(loaded_s + 0.05 + 1.0, 2), (loaded_s + 0.05 + 2.0, 3)]
    errors_s = [seen - wanted for (seen, _), (wanted, _) in zip(ramp, expected, strict=False)]
    shape = [carriers for _, carriers in ramp] == [2, 3]
    within = shape and all(0 <= error <= 0.04 for error in errors_s)
    resets = [carriers for _, carriers in steps(idle)]
    bench.say("\n[bold]Carrier aggregation[/bold] (60 Mbit/s, three carriers, first 40 %, 2 s)")
    bench.say(f"paced at 20 Mbit/s: {len(steps(paced))} changes; " + target("0", not steps(paced)))
    bench.say(
        f"saturated: {', '.join(f'{n} carriers at {t:.3f} s' for t, n in ramp)}; late by "
        f"{', '.join(f'{e * 1e3:.0f} ms' for e in errors_s)}; "
        + target("one step of 20 ms (and one to see the load)", within)
    )
    bench.say(f"after idling: {resets}; " + target("back to 1", 1 in resets))
    return {"paced": steps(paced), "ramp": ramp, "errors_s": errors_s, "idle": steps(idle)}


def _handovers(bench: Bench) -> Result:
    """Measures handovers between access points by every preset, with UDP every 0.5 ms."""
    calls = []
    for name in HANDOVERS:
        path = bench.work / f"handover-{name}.yaml"
        path.write_text(
            f"name: handover-{name}\npayload: {{size: 1 MB}}\nlinks:\n"
            "  wifi: {down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, radio: {standard: ac, "
            f"width: 80 MHz, loss: 0 %, handover: {name}, access_points: "
            "[{name: ap1, signal: -50 dBm}, {name: ap2, signal: -50 dBm}]}}\n"
            f"  lte: {{{IDLE}}}\n"
            "events:\n  - {at: 1 s, link: wifi, handover: ap2}\n"
        )
        calls.append(_udp(path, "wlan0", FRAME_BYTES * 8 / 0.0005, 5))
    shown = table("preset", "stated s", "seen s", "error ms")
    rows = []
    worst_s = 0.0
    for (name, preset), done in zip(HANDOVERS.items(), bench.all("handover", calls), strict=True):
        _, arrivals = _arrivals(done)
        # Another address ends the flow. The client can then only see the association.
        gap_s = max((b[1] - a[1]) / 1e9 for a, b in pairwise(arrivals))
        if not preset.keeps_address:
            events = {line["kind"]: line["t_s"] for line in done.lines("events.jsonl")}
            gap_s = events["associated"] - events["handover"]
        rows.append({"preset": name, "stated_s": preset.outage_s, "seen_s": gap_s})
        worst_s = max(worst_s, abs(gap_s - preset.outage_s))
        shown.add_row(
            name,
            f"{preset.outage_s:.3f}",
            f"{gap_s:.4f}",
            f"{(gap_s - preset.outage_s) * 1e3:+.2f}",
        )
    bench.say("\n[bold]Handover[/bold]")
    bench.console.print(shown)
    bench.say(target("5 ms", worst_s <= HANDOVER_AIM_S))
    return {"rows": rows, "worst_s": worst_s}


def _player(bench: Bench) -> Result:
    """Measures the real time that following the load and a trace in steps of 20 ms costs."""
    trace, _ = _sawtooth(bench, 60.0, 40.0, 70.0)
    common = "up: 10 Mbit/s, rtt: 50 ms"
    still = bench.links(
        "player-still",
        size="250 MB",
        wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 15 ms",
        lte=f"down: 55 Mbit/s, {common}",
    )
    moving = bench.links(
        "player-moving",
        size="250 MB",
        wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 15 ms",
        lte=f"down: 55 Mbit/s, {common}, trace: {{file: {trace}}}, carriers: {{count: 3}}, rrc: {{}}",
    )
    times: dict[str, list[float]] = {"still": [], "moving": []}
    for _ in range(1 if bench.quick else 4):
        for name, file in (("still", still), ("moving", moving)):
            (done,) = bench.all("player", [("run", file, "-a", "alg3")], parallel=1)
            # Real seconds per virtual second, since the two downloads differ in length.
            times[name].append(float(done.json["wall_s"]) / done.json["figures"]["download_s"])
    cost = statistics.median(times["moving"]) / statistics.median(times["still"]) - 1
    bench.say("\n[bold]Cost of the player[/bold] (trace every 100 ms, carriers, RRC on LTE)")
    bench.say(
        f"{percent(cost, 1)} of the real time per virtual second; "
        + target("10 %", cost <= PLAYER_AIM)
    )
    return {"real_per_virtual_s": times, "cost": cost}
