"""Section `faults`: every fault of links against every workload and all that use several links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from faults import LINK_FAULTS, LONGEST_S, PROGRAMS, SURE, UNSURE, able, text

from bench.common import Bench, Result, table, target

KINDS = ("whole", "refused", "failed", "wrong", "hangs")


@dataclass(frozen=True)
class Ending:
    """How a run came out: whole after `took_s`, or with the error `failure`."""

    program: str
    fault: str
    contestant: str
    took_s: float | None
    failure: str | None

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.failure is None:
            assert self.took_s is not None
            is_late = self.took_s > LONGEST_S and self.contestant in SURE
            return "hangs" if is_late else "whole"
        if "sha-256" in self.failure.lower() or "bytes downloaded instead" in self.failure:
            return "wrong"
        if "hung" in self.failure:
            return "hangs"
        is_sure = self.contestant in SURE and PROGRAMS[self.program].sure
        return "failed" if is_sure else "refused"


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
    bad = [one for one in found if one.kind not in ("whole", "refused")]
    for one in bad:
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
    return [
        Ending(
            program, fault, row["algorithm"], row["download_s"], next(iter(row["failures"]), None)
        )
        for fault, one in zip(LINK_FAULTS, done.json["comparisons"], strict=True)
        for row in one["rows"]
    ]
