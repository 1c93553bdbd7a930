"""Section `impairments`: measures impairments of both directions in captures at both ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from both_ends import Interval, Way, digest, read
from linklab.core.link_state import Direction
from linklab.models import delay_tables
from linklab.models.delay_tables import DelayTable

from bench.common import PROBES, Bench, Result, table, target

RTT_S = 0.02
LINK = f"down: 80 Mbit/s, up: 20 Mbit/s, rtt: {RTT_S * 1e3:g} ms"
IDLE = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 30 ms"
INTERVAL_S = 0.001
PROBE_FRAME_BYTES = 74
REPEATS = 10

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
STEPS = (0, 0, 0, 8192, 8192, 16384, -8192, -4096)
"""A table of the user's."""

Check = Callable[[Way], list[Interval]]


@dataclass(frozen=True)
class Case:
    """Impairments of both directions, and what each should show."""

    name: str
    asked: dict[Direction, str]
    checks: dict[Direction, Check]


def _quantiles(mean_s: float, jitter_s: float, of: DelayTable) -> Check:
    """Expects the distribution's quantiles, each in the middle of its step."""

    def check(way: Way) -> list[Interval]:
        around_s = RTT_S / 2 + mean_s
        return way.quantiles({p: around_s + jitter_s * of.quantile(p) for p in QUANTILES})

    return check


def _steps(mean_s: float, jitter_s: float) -> Check:
    """Expects each value of `STEPS` as often as it stands there."""

    def check(way: Way) -> list[Interval]:
        found = []
        for step in sorted(set(STEPS)):
            at_s = RTT_S / 2 + mean_s + jitter_s * step / delay_tables.UNIT
            near = sum(abs(delay_s - at_s) < jitter_s / 10 for delay_s in way.delays_s)
            share = STEPS.count(step) / len(STEPS)
            found.append(way.share(f"delay {at_s * 1e3:g} ms", near / len(way.delays_s), share))
        return found

    return check


def _shares(**expected: float) -> Check:
    def check(way: Way) -> list[Interval]:
        measured = {
            "reorder": way.overtaking,
            "duplicate": way.duplicated,
            "corrupt": way.loss,
        }
        return [way.share(what, measured[what], share) for what, share in expected.items()]

    return check


def _policed(rate_bps: float, burst_bytes: float) -> Check:
    """Expects the bucket and what flows into it, to the frame."""

    def check(way: Way) -> list[Interval]:
        allowed_bytes = burst_bytes + rate_bps / 8 * len(way.sent_s) * INTERVAL_S
        frames = min(allowed_bytes // PROBE_FRAME_BYTES, len(way.sent_s))
        return [Interval("frames passed", len(way.arrivals), frames, 1)]

    return check


def _ecn(way: Way) -> list[Interval]:
    return [Interval("ECN field", way.ecn, 0, 0)]


def _of(name: str) -> DelayTable:
    return delay_tables.of_name(name)


CASES = (
    Case(
        "loss",
        {"down": "loss: 3 %", "up": "loss: 2 %, loss_burst: 4"},
        {"down": lambda way: way.losses(0.03), "up": lambda way: way.losses(0.02, 4)},
    ),
    Case(
        "normal and pareto",
        {
            "down": "delay: 50 ms, jitter: 5 ms, in_order: false",
            "up": "delay: 40 ms, jitter: 8 ms, distribution: pareto, in_order: false",
        },
        {
            "down": _quantiles(0.05, 0.005, _of("normal")),
            "up": _quantiles(0.04, 0.008, _of("pareto")),
        },
    ),
    Case(
        "uniform and a table",
        {
            "down": "delay: 20 ms, jitter: 0.2 ms, distribution: uniform",
            "up": "delay: 60 ms, jitter: 10 ms, distribution: steps, in_order: false",
        },
        {"down": _quantiles(0.02, 0.0002, _of("uniform")), "up": _steps(0.06, 0.01)},
    ),
    Case(
        "reorder, duplicate, corrupt",
        {"down": "delay: 5 ms, reorder: 2 %, duplicate: 1 %", "up": "corrupt: 3 %"},
        {"down": _shares(reorder=0.02, duplicate=0.01), "up": _shares(corrupt=0.03)},
    ),
    Case(
        "policer, ECN",
        {"down": "police: 200 kbit/s, police_burst: 50 kB", "up": "bleach_ecn: true"},
        {"down": _policed(2e5, 5e4), "up": _ecn},
    ),
)


def impairments(bench: Bench) -> Result:
    """Losses, bursts, delays, reordering, copies, corruption and policers against what was asked."""
    packets = 4000 if bench.quick else 20_000
    calls = [_call(bench, case, packets) for case in CASES]
    done = bench.all("impaired links", calls)
    shown = table("case", "", "what", "measured", "expected", "95 %, ±", left=3)
    result: Result = {}
    found: list[Interval] = []
    for case, one in zip(CASES, done, strict=True):
        ways = read(one.run_dir)
        for direction, check in case.checks.items():
            intervals = check(ways[direction])
            found += intervals
            result[f"{case.name}, {direction}"] = [vars(interval) for interval in intervals]
            for interval in intervals:
                values = (interval.measured, interval.expected, interval.half)
                figures = [f"{value:.4f}" for value in values]
                shown.add_row(case.name, direction, interval.what, *figures)
    held = sum(interval.holds for interval in found)
    bench.say(f"\n[bold]Impairments in captures[/bold] ({packets} packets each way)")
    bench.console.print(shown)
    bench.say(
        f"{held} of {len(found)} within their interval; "
        + target("95 %", held >= 0.95 * len(found))
    )
    return {"cases": result, "held": held, "of": len(found), "repeats": _repeats(bench)}


def _repeats(bench: Bench) -> Result:
    """Repeats a run with all impairments, and compares every packet's nanoseconds."""
    every = (
        "loss: 2 %, loss_burst: 3, delay: 10 ms, jitter: 2 ms, distribution: pareto, "
        "reorder: 1 %, duplicate: 1 %, corrupt: 1 %, bleach_ecn: true, police: 500 kbit/s, "
        "police_burst: 10 kB"
    )
    call = _call(bench, Case("everything", {"down": every, "up": every}, {}), 1000)
    done = bench.all("the same again", [call] * REPEATS)
    different = {digest(one.run_dir) for one in done}
    bench.say(
        f"{REPEATS} runs with all impairments, in every packet and nanosecond: "
        f"{len(different)} different; " + target("1", len(different) == 1)
    )
    return {"runs": REPEATS, "different": len(different)}


def _call(bench: Bench, case: Case, packets: int) -> tuple[object, ...]:
    words = "".join(word for word in case.name.lower() if word.isalpha())
    (bench.work / "steps.dist").write_text(" ".join(map(str, STEPS)))
    impaired = ", ".join(f"impair_{way}: {{{asked}}}" for way, asked in case.asked.items())
    file = bench.links(
        f"impaired-{words}",
        wifi=f"{LINK}, {impaired}",
        lte=IDLE,
        more="distributions: {steps: steps.dist}\n",
    )
    probe = PROBES / "both_ways.py"
    return ("exec", file, "--", "python3", probe, "wlan0", "server-isp", packets, INTERVAL_S)
