"""Section `field`: compares scenarios made from downloads' records, or from captures, with the
links that made them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linklab.core.link_kinds import KINDS
from linklab.field import capacity, capture, files, making, recording
from linklab.field.capacity import CapacityStep
from linklab.runs import time_series
from linklab.runs.time_series import TimeSeries
from linklab.scenario.named_files import with_files

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
"""The downloads of each scenario: steady links, moving ones, breaking ones, and three links."""

SAME = ("adaptive", "alg1", "single-wifi")
"""The clients that are recorded and run again."""

OTHER = ("adaptive", "alg3")
"""The client that is recorded, and the one that is predicted from that."""

RECORDS, CAPTURES = "records", "captures"
"""The source of a scenario: what the client recorded, or every packet on its devices."""

TARGET_MEDIAN, TARGET_WORST, TARGET_CAPACITY = 0.03, 0.08, 0.05


@dataclass(frozen=True)
class _Replay:
    """Holds a download of the lab that stands for one of the field, and a client over links made of
    its record or captures."""

    scenario: str
    recorded: str
    predicted: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.scenario}-{self.recorded}-{self.source}"


def field(bench: Bench) -> Result:
    """Scenarios made of downloads' records alone, and of captures alone: download times and capacities
    beside the true ones."""
    names = list(MEGABYTES)[:3] if bench.quick else list(MEGABYTES)
    plan: list[_Replay] = []
    true_s: dict[tuple[str, str], float] = {}
    errors: dict[str, list[float]] = {RECORDS: [], CAPTURES: []}
    for name in names:
        runs = _true_runs(bench, name)
        true_s |= {(name, who): _download_s(done) for who, done in runs.items()}
        for source in (RECORDS, CAPTURES):
            for who in SAME:
                replay = _Replay(name, who, who, source)
                errors[source] += _made(bench, replay, runs[who].run_dir)
                plan.append(replay)
            plan.append(_Replay(name, *OTHER, source))
        for file in bench.work.glob("runs/*/*.pcap"):
            file.unlink()
    calls = [("run", bench.work / f"{one.name}.yaml", "-a", one.predicted) for one in plan]
    again = bench.all("made of them", calls, parallel=1)
    shown = table("scenario", "made of", "recorded", "run", "true s", "made s", "error %", left=4)
    moved: dict[_Replay, float] = {}
    for replay, done in zip(plan, again, strict=True):
        measured_s, made_s = true_s[replay.scenario, replay.predicted], _download_s(done)
        moved[replay] = made_s / measured_s - 1
        words = (replay.scenario, replay.source, replay.recorded, replay.predicted)
        shown.add_row(*words, f"{measured_s:.3f}", f"{made_s:.3f}", percent(moved[replay]))
    bench.console.print(shown)
    return {
        source: _verdicts(bench, source, moved, errors[source]) for source in (RECORDS, CAPTURES)
    } | {"download_errors": {f"{k.name}>{k.predicted}": v for k, v in moved.items()}}


def _verdicts(
    bench: Bench, source: str, moved: Mapping[_Replay, float], errors: list[float]
) -> Result:
    bench.say(f"Made of {source}:")
    found: Result = {}
    for who in (*SAME, OTHER[1]):
        off = [v for one, v in moved.items() if (one.source, one.predicted) == (source, who)]
        found[who] = _verdict(bench, who, off)
    found["capacity"] = _capacity_verdict(bench, errors)
    return found


def _true_runs(bench: Bench, name: str) -> dict[str, Done]:
    """Runs downloads over a scenario by client, with captures of the used links."""
    made = variant(name, f"field-{name}", size_bytes=MEGABYTES[name] * 10**6)
    made = with_files(replace(made, energy=None), lambda _, file: file.resolve())
    file = bench.write(made)
    who = list(dict.fromkeys([*SAME, *OTHER]))
    links = [one.removeprefix("single-") if one.startswith("single-") else "all" for one in who]
    calls = [("run", file, "-a", one, "--pcap", link) for one, link in zip(who, links, strict=True)]
    return dict(zip(who, bench.all(f"the field: {name}", calls, parallel=1), strict=True))


def _made(bench: Bench, replay: _Replay, run_dir: Path) -> list[float]:
    """Writes the scenario made from a download. Returns the errors of its capacity, second by
    second, on links that were saturated."""
    if replay.source == RECORDS:
        recorded = recording.read(run_dir)
    else:
        (recorded,) = capture.read(sorted(run_dir.glob("*.pcap")))
    kinds = {one.link: KINDS[one.link.rstrip("2")] for one in recorded.histories}
    made = making.scenario(replay.name, [recorded], kinds)
    files.write(made, bench.work / f"{replay.name}.yaml", [run_dir.name], overwrite=True)
    true = time_series.capacities_bps(run_dir, recorded.length_s, 1.0, "down")
    return [
        error
        for one in recorded.histories
        if one.carried_bytes
        for error in _errors(
            capacity.of_history(one, recorded.length_s).steps, true[one.link], recorded.length_s
        )
    ]


def _errors(steps: Iterable[CapacityStep], true: TimeSeries, length_s: float) -> Iterable[float]:
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
    what = ", predicted of adaptive's" if who == OTHER[1] else ""
    bench.say(
        f"{who}{what}: median {percent(median)} %, worst {percent(worst)} %; "
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
