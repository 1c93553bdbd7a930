"""Section `queues`: measures queue disciplines below a link's rate against what is published of them.

Each has one and four cubic connections of 40 ms on 50 Mbit/s, at a constant rate and at rates that
change every 20 ms to 500 ms. A queue's sojourn times are the kernel's (`sojourns.jsonl`).
"""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linklab.core import sojourns
from linklab.queues.registry import DISCIPLINES

from bench.common import PROBES, Bench, Done, Result, table, target

RATE_BPS = 50e6
RTT_S = 0.04
SECONDS = 20
REPEATED = "fq_pie"
"""The discipline that is run again and again: it draws random numbers and hashes."""
TIMES = 10

PUBLISHED_P50_S: dict[str, tuple[str, float, float]] = {
    "drop-tail": ("full queue of 400 ms, less cubic's saw tooth", 0.2, 0.42),
    "drop-head": ("the same", 0.2, 0.42),
    "codel": ("about 5 ms (RFC 8289)", 0.0005, 0.010),
    "fq_codel": ("about 5 ms (RFC 8290)", 0.0003, 0.010),
    "cake": ("about 5 ms (Cake, LANMAN 2018)", 0.0003, 0.010),
    "pie": ("about 15 ms (RFC 8033)", 0.007, 0.025),
    "fq_pie": ("about 15 ms", 0.007, 0.025),
    "red": ("below max: 102 ms", 0.005, 0.105),
    "dualpi2": ("about 15 ms (RFC 9332)", 0.004, 0.025),
}
"""The published waiting time in words, and limits of the median in seconds."""

LEAST_USE = 0.9
"""The least part of a constant rate that cubic gets: an AQM of 5 ms costs some of one connection's."""


@dataclass(frozen=True)
class Case:
    """A discipline, a number of connections, and whether the rate changes."""

    name: str
    flows: int
    changes: bool

    @property
    def label(self) -> str:
        return f"{self.name}-{self.flows}{'-changing' if self.changes else ''}".replace("_", "-")


def queues(bench: Bench) -> Result:
    """Queue disciplines: throughput, sojourn times, drops and marks beside what is published."""
    flows = (1,) if bench.quick else (1, 4)
    changing = (False,) if bench.quick else (False, True)
    cases = [
        Case(one.name, number, changes)
        for changes in changing
        for number in flows
        for one in DISCIPLINES
    ]
    _write_rates(bench.work / "changing.csv")
    calls = [_call(_scenario(bench, case), ["cubic"] * case.flows) for case in cases]
    done = bench.all("queue disciplines", calls)
    shown = table("discipline", "flows", "rate", "Mbit/s", "p50 ms", "p95 ms", "drops")
    results = {}
    for case, one in zip(cases, done, strict=True):
        found = _measured(one)
        results[case.label] = found
        shown.add_row(
            case.name,
            str(case.flows),
            "changing" if case.changes else "constant",
            f"{found['goodput_bps'] / 1e6:.1f}",
            f"{found['p50_s'] * 1e3:.1f}",
            f"{found['p95_s'] * 1e3:.1f}",
            str(found["dropped_packets"]),
        )
    bench.console.print(shown)
    steady = [case for case in cases if not case.changes]
    for case in steady:
        words, least_s, most_s = PUBLISHED_P50_S[case.name]
        met = least_s <= results[case.label]["p50_s"] <= most_s
        bench.say(
            f"{case.label}: {words}; " + target(f"{least_s * 1e3:g} to {most_s * 1e3:g} ms", met)
        )
    used = min(results[case.label]["goodput_bps"] for case in steady) / RATE_BPS
    bench.say(target(f"at least {LEAST_USE:.0%} of the rate, {used:.1%}", used >= LEAST_USE))
    return {
        "cases": results,
        "dualpi2": _scalable_beside_classic(bench),
        "repeated": _repeated(bench),
    }


def _write_rates(path: Path) -> None:
    """Writes a trace whose rate changes every 20 ms to 500 ms, from 5 Mbit/s to 95 Mbit/s."""
    drawn, t_s, lines = random.Random(1), 0.0, ["t,down_mbit"]
    while t_s < SECONDS + 5:
        lines.append(f"{t_s:g},{drawn.uniform(5, 95):.6f}")
        t_s = round(t_s + drawn.uniform(0.02, 0.5), 3)
    path.write_text("\n".join(lines) + "\n")


def _scenario(bench: Bench, case: Case, more: str = "") -> Path:
    trace = ", trace: {file: ./changing.csv, rate: recorded}" if case.changes else ""
    rate = "95 Mbit/s" if case.changes else "50 Mbit/s"
    size = ", size: 2.5 MB" if case.name.startswith("drop") or case.name == "red" else ""
    link = (
        f"down: {rate}, up: 50 Mbit/s, rtt: 40 ms, "
        f"queue_down: {{discipline: {case.name}{size}{more}}}{trace}"
    )
    path = bench.work / f"{case.label}.yaml"
    path.write_text(f"name: {case.label}\npayload: {{size: 1 MB}}\nlinks:\n  lte: {{{link}}}\n")
    return path


def _call(file: Path, controls: list[str], seed: int = 1) -> list[object]:
    flows = PROBES / "flows.py"
    serve = f"python3 {flows} serve {{port}}"
    client = ["python3", flows, "fetch", "rmnet0", SECONDS, *controls]
    return ["exec", file, "--seed", seed, "--server", serve, "--", *client]


def _measured(done: Done) -> dict[str, Any]:
    """Returns what all connections got, and the figures of the downlink's queue."""
    received = json.loads((done.run_dir / "client.out").read_text())
    last = done.queue("lte", "down")[-1]
    waits = [one["buckets"] for one in done.lines("sojourns.jsonl") if one["direction"] == "down"]
    counts = [
        sum(pair) for pair in zip(*(one + [0] * (384 - len(one)) for one in waits), strict=True)
    ]
    return {
        "goodput_bps": sum(received) * 8 / (SECONDS / 2),
        "each_bps": [one * 8 / (SECONDS / 2) for one in received],
        "p50_s": sojourns.quantile_s(counts, 0.5),
        "p95_s": sojourns.quantile_s(counts, 0.95),
        "dropped_packets": last["dropped_packets"],
        **last.get("discipline", {}),
    }


def _scalable_beside_classic(bench: Bench) -> Result:
    """Measures dctcp beside cubic in DualPI2, which takes all packets with ECN as scalable ones."""
    file = _scenario(bench, Case("dualpi2", 2, changes=False), ", scalable: ect")
    numbers = (1,) if bench.quick else (1, 4)
    calls = [_call(file, ["dctcp", "cubic"] * number) for number in numbers]
    results = {}
    for number, done in zip(numbers, bench.all("dctcp beside cubic", calls), strict=True):
        found = _measured(done)
        ratio = sum(found["each_bps"][::2]) / sum(found["each_bps"][1::2])
        waits_s = {name: _late_wait_s(done, name) for name in ("dctcp", "cubic")}
        bench.say(
            f"dualpi2, dctcp beside cubic, {number} each: ratio of rates {ratio:.2f}, waits "
            f"{waits_s['dctcp'] * 1e3:.1f} ms and {waits_s['cubic'] * 1e3:.1f} ms"
        )
        bench.say(target("ratio 0.7 to 1.4", 0.7 <= ratio <= 1.4))
        bench.say(target("scalable packets wait at most 2 ms", waits_s["dctcp"] <= 0.002))
        results[str(number)] = {"ratio": ratio, "waits_s": waits_s, **found}
    return results


def _late_wait_s(done: Done, control: str) -> float:
    """Returns the median of TCP's round-trip times above the link's, after slow start."""
    lines = map(str.split, (done.run_dir / "server.out").read_text().splitlines())
    rtts_s = [int(rtt_us) / 1e6 for name, rtt_us in lines if name == control]
    return statistics.median(rtts_s[len(rtts_s) // 2 :]) - RTT_S


def _repeated(bench: Bench) -> Result:
    """Runs the same again and again, and with another seed."""
    file = _scenario(bench, Case(REPEATED, 4, changes=False))
    times = 2 if bench.quick else TIMES
    calls = [_call(file, ["cubic"] * 4) for _ in range(times)]
    same = {_written(one) for one in bench.all("the same again", calls)}
    other = _written(bench.linklab(*_call(file, ["cubic"] * 4, seed=2)))
    bench.say(target(f"{times} runs equal to the nanosecond", len(same) == 1))
    bench.say(target("another seed gives other figures", other not in same))
    return {"different": len(same), "seed_matters": other not in same}


def _written(done: Done) -> str:
    files = ("outcome.json", "queues.jsonl", "sojourns.jsonl", "client.out")
    return "".join((done.run_dir / name).read_text() for name in files)
