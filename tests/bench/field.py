"""Section `field`: scenarios made of downloads' records alone, beside the links that made them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linklab.core.link_kinds import KINDS
from linklab.field import capacity, files, making, recording
from linklab.field.capacity import Step
from linklab.runs import courses
from linklab.runs.courses import Course
from linklab.scenario.trace_files import with_trace_files

from bench.common import Bench, Done, Result, percent, table, target, variant

MEGABYTES: Mapping[str, int] = {
    "static-80-50": 60,
    "static-7-66": 40,
    "hs-s7": 100,
    "ls": 60,
    "ts": 80,
    "tm": 80,
    "mptcp-wglg": 30,
    "wifi-outage": 80,
    "wifi-gone": 80,
    "superagg-blackout": 40,
    "two-operators": 60,
}
"""What is downloaded of each scenario: links that stay, that move, that break off, and three."""

SAME = ("alg3-rescue", "alg1", "single-wifi")
"""Who is recorded and run again."""

OTHER = ("alg3-rescue", "alg3")
"""Who is recorded, and who is predicted of that."""

TARGET_MEDIAN, TARGET_WORST, TARGET_CAPACITY = 0.03, 0.08, 0.05


@dataclass(frozen=True)
class _Replay:
    """A download of the lab, taken for the field's, and the same or another one over links that are
    made of its record."""

    scenario: str
    recorded: str
    predicted: str

    @property
    def name(self) -> str:
        return f"{self.scenario}-{self.recorded}"


def field(bench: Bench) -> Result:
    """Scenarios made of downloads' records alone: download times and capacities beside the true ones."""
    names = list(MEGABYTES)[:3] if bench.quick else list(MEGABYTES)
    plan = [
        _Replay(name, recorded, predicted)
        for name in names
        for recorded, predicted in (*((who, who) for who in SAME), OTHER)
    ]
    true = _true_runs(bench, names)
    errors_of = {
        replay: _made(bench, replay, true[replay.scenario, replay.recorded].run_dir)
        for replay in plan
        if replay.recorded == replay.predicted
    }
    calls = [("run", bench.work / f"{one.name}.yaml", "-a", one.predicted) for one in plan]
    again = bench.all("made of records", calls, parallel=1)
    shown = table("scenario", "recorded", "run", "true s", "made s", "error %", left=3)
    moved: dict[_Replay, float] = {}
    for replay, done in zip(plan, again, strict=True):
        true_s = _download_s(true[replay.scenario, replay.predicted])
        made_s = _download_s(done)
        moved[replay] = made_s / true_s - 1
        shown.add_row(
            replay.scenario, replay.recorded, replay.predicted,
            f"{true_s:.3f}", f"{made_s:.3f}", percent(moved[replay]),
        )  # fmt: skip
    bench.console.print(shown)
    figures: Result = {
        who: _verdict(bench, who, [moved[one] for one in plan if one.predicted == who])
        for who in (*SAME, OTHER[1])
    }
    errors = [error for found in errors_of.values() for error in found]
    figures["capacity"] = _capacity_verdict(bench, errors)
    return figures | {"download_errors": {f"{k.name}>{k.predicted}": v for k, v in moved.items()}}


def _true_runs(bench: Bench, names: Iterable[str]) -> dict[tuple[str, str], Done]:
    who = list(dict.fromkeys([*SAME, *OTHER]))
    keys = [(name, one) for name in names for one in who]
    calls = []
    for name, one in keys:
        made = variant(name, f"field-{name}", size_bytes=MEGABYTES[name] * 10**6)
        made = with_trace_files(replace(made, energy=None), lambda _, file: file.resolve())
        calls.append(("run", bench.write(made), "-a", one))
    return dict(zip(keys, bench.all("the field", calls, parallel=1), strict=True))


def _made(bench: Bench, replay: _Replay, run_dir: Path) -> list[float]:
    """Writes the scenario that a record tells of; how far its capacity is off, second by second, on
    links that were used up all of it."""
    recorded = recording.read(run_dir)
    kinds = {one.link: KINDS[one.link.rstrip("2")] for one in recorded.courses}
    made = making.scenario(replay.name, [recorded], kinds)
    files.write(made, bench.work / f"{replay.name}.yaml", [run_dir.name], overwrite=True)
    true = courses.capacities_bps(run_dir, recorded.length_s, 1.0)
    return [
        error
        for one in recorded.courses
        if one.carried_bytes
        for error in _errors(
            capacity.of_course(one, recorded.length_s).steps, true[one.link], recorded.length_s
        )
    ]


def _errors(steps: Iterable[Step], true: Course, length_s: float) -> Iterable[float]:
    steps = tuple(steps)
    for begin_s, true_bps in true:
        parts = [
            (min(one.end_s, begin_s + 1) - max(one.start_s, begin_s), one)
            for one in steps
            if one.start_s < begin_s + 1 and one.end_s > begin_s
        ]
        seen_s = sum(part_s for part_s, one in parts if one.is_seen)
        if seen_s > 0.999 and begin_s + 1 <= length_s and true_bps > 0:
            yield sum(part_s * one.rate_bps for part_s, one in parts) / true_bps - 1


def _download_s(done: Done) -> float:
    return float(done.json["figures"]["download_s"])


def _verdict(bench: Bench, who: str, moved: list[float]) -> Result:
    off = [abs(one) for one in moved]
    median, worst = statistics.median(off), max(off)
    what = "predicted of alg3-rescue's records" if who == OTHER[1] else "of its own records"
    bench.say(
        f"{who}, {what}: median {percent(median)} %, worst {percent(worst)} %; "
        + target(
            f"{TARGET_MEDIAN:.0%} and {TARGET_WORST:.0%}",
            median <= TARGET_MEDIAN and worst <= TARGET_WORST,
        )
    )
    return {"median": median, "worst": worst}


def _capacity_verdict(bench: Bench, errors: list[float]) -> Result:
    off = sorted(abs(one) for one in errors)
    share = sum(one <= TARGET_CAPACITY for one in off) / len(off)
    bench.say(
        f"capacity in {len(off)} seconds of links that were used up: median "
        f"{percent(statistics.median(off))} %, worst {percent(off[-1])} %, within 5 % in "
        f"{100 * share:.1f} %; " + target(f"{TARGET_CAPACITY:.0%} per second", share == 1)
    )
    return {
        "seconds": len(off),
        "median": statistics.median(off),
        "worst": off[-1],
        "within": share,
    }
