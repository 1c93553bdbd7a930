"""Section `faults`: every fault of links against every workload and all that use several links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from faults import LINK_FAULTS, LONGEST_S, PROGRAMS, SURE, UNSURE, able, text

from bench.common import Bench, Result, table, target

KINDS = ("whole", "slow", "refused", "failed", "wrong", "hangs")

STILL_S, STILL_BYTES = 60.0, 10_000
"""Who moves less in so long has stopped: a link of 10 kbit/s, the slowest of all, brings 75 kB, and
what TCP asks again and again is less."""

Moved = Sequence[tuple[float, int]]
"""How many bytes links had carried in all at times in seconds."""


@dataclass(frozen=True)
class Ending:
    """How a run came out: whole after `took_s`, or with the error `failure`. `is_still` says that
    there were `STILL_S` without more than `STILL_BYTES`."""

    program: str
    fault: str
    contestant: str
    took_s: float | None
    failure: str | None
    is_still: bool

    @property
    def kind(self) -> str:
        """One of `KINDS`. Slow is who goes on, but for longer than with any other link: algorithms
        that as published use one link alone, be it the worst."""
        if self.failure is None:
            assert self.took_s is not None
            if self.took_s <= LONGEST_S or self.contestant not in SURE:
                return "whole"
            return "hangs" if self.is_still else "slow"
        if "sha-256" in self.failure.lower() or "bytes downloaded instead" in self.failure:
            return "wrong"
        if "hung" in self.failure:
            return "hangs"
        is_sure = self.contestant in SURE and PROGRAMS[self.program].sure
        return "failed" if is_sure else "refused"


def is_still(moved: Moved) -> bool:
    """Whether there were `STILL_S` in which no more than `STILL_BYTES` moved. Pure."""
    since_s, before = 0.0, 0
    for at_s, total in moved:
        if total - before > STILL_BYTES:
            since_s, before = at_s, total
        elif at_s - since_s > STILL_S:
            return True
    return False


def faults(bench: Bench) -> Result:
    """Every fault of links against every workload and all that use several links: how runs end."""
    programs = bench.scenarios or [*PROGRAMS]
    asked = bench.contestants or (SURE[::4] if bench.quick else (*SURE, *UNSURE))
    found = [one for program in programs for one in _endings(bench, program, asked)]
    shown = table("workload", "runs", *KINDS)
    for program in programs:
        count = Counter(one.kind for one in found if one.program == program)
        shown.add_row(program, str(count.total()), *(str(count[kind]) for kind in KINDS))
    bench.console.print(shown)
    bad = [one for one in found if one.kind not in ("whole", "slow", "refused")]
    for one in (*bad, *(one for one in found if one.kind == "slow")):
        why = f"{one.took_s:.1f} s" if one.failure is None else one.failure
        bench.say(f"{one.kind}: {one.program}, {one.fault}, {one.contestant}: {why}")
    bench.say(target("no wrong file, nobody hangs, none of ours with rescue fails", not bad))
    return {"runs": len(found), "bad": [asdict(one) for one in bad]}


def _endings(bench: Bench, program: str, asked: Sequence[str]) -> list[Ending]:
    files = []
    for name, fault in LINK_FAULTS.items():
        path = bench.work / f"{program}-{name}.yaml"
        path.write_text(text(path.stem, PROGRAMS[program], fault))
        files.append(path)
    parallel = ("--parallel", bench.jobs) if bench.jobs else ()
    names = ",".join(able(asked, program))
    done = bench.linklab("compare", *files, "-a", names, *parallel)
    found = []
    for name, one in zip(LINK_FAULTS, done.json["comparisons"], strict=True):
        for row in one["rows"]:
            who, took_s = row["algorithm"], row["download_s"]
            queues = f"{program}-{name}-{who}-seed1/queues.jsonl"
            failure = next(iter(row["failures"]), None)
            still = (took_s or 0) > LONGEST_S and is_still(_moved(done.lines(queues)))
            found.append(Ending(program, name, who, took_s, failure, still))
    return found


def _moved(samples: Iterable[dict[str, Any]]) -> Moved:
    """What all queues of a run had sent."""
    totals: dict[float, int] = defaultdict(int)
    for sample in samples:
        totals[sample["t_s"]] += sample["sent_bytes"]
    return sorted(totals.items())
