"""Section `faults`: runs every fault of links with every workload and every client of several
links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from faults import HELPED, LINK_FAULTS, LONGEST_S, MULTIPATH, PROGRAMS, SURE, UNSURE, able, text
from linklab.runs import outcome

from bench.common import Bench, Result, table, target

KINDS = ("whole", "slow", "refused", "failed", "wrong", "hangs")

STILL_S, STILL_BYTES = 60.0, 10_000
"""A run that moves fewer bytes in this time has stopped. A link of 10 kbit/s, the slowest here,
carries 75 kB in it. TCP's repeated tries carry less."""

GIVE_UP_S, TCP_S = 300.0, 925.0 + 120.0
"""The times without a byte after which multilink gives up (`--give-up`), and Linux' TCP. TCP gives
up after the first wait that ends after 925 s (tcp_retries2 is 15), and no wait exceeds two minutes.
loss-fetching and super-aggregation give up as multilink does. So does aria2, which tries five times (`--max-tries`) for
a minute each (`--timeout`)."""

HUNG = "still running after"
"""linklab's message for a run that did not end in wall-clock time."""

WRONG = ("sha-256", "bytes downloaded instead", "bytes arrived instead")
"""The messages, in small letters, for a file that differs from the server's."""

Moved = Sequence[tuple[float, int]]
"""Total bytes that links had carried in the workload's direction, at times in seconds. In the other
direction a router may tell the server that the client is gone, at 300 B/s."""


@dataclass(frozen=True)
class Ending:
    """Holds the end of a run: complete after `took_s`, or failed with `failure`. Without an
    `outcome` the lab failed, not the client. `still_s` is the longest time without progress."""

    program: str
    fault: str
    client: str
    took_s: float | None
    failure: str | None
    still_s: float
    has_outcome: bool = True

    @property
    def patience_s(self) -> float:
        """The time without progress after which the run counts as hung. A client that may fail has
        to report when it gives up."""
        if self.client in SURE:
            return STILL_S
        has_own = self.client not in (*MULTIPATH, *HELPED)
        return STILL_S + (GIVE_UP_S if has_own else TCP_S)

    @property
    def kind(self) -> str:
        """One of `KINDS`. A run is slow if it goes on, but longer than with any other link. That
        applies to algorithms that as published use one link alone, Multipath TCP, and foreign
        programs. A failure of the lab excuses no client."""
        if self.failure is not None:
            if any(words in self.failure.lower() for words in WRONG):
                return "wrong"
            if HUNG in self.failure:
                return "hangs"
        is_late = self.took_s is None or self.took_s > LONGEST_S
        if is_late and self.still_s > self.patience_s:
            return "hangs"
        if self.failure is None:
            return "slow" if is_late else "whole"
        is_sure = self.client in SURE and PROGRAMS[self.program].sure
        return "failed" if is_sure or not self.has_outcome else "refused"


def still_s(moved: Moved) -> float:
    """Returns the longest time in which no more than `STILL_BYTES` moved in `STILL_S`. Pure."""
    longest_s, first, since_s = 0.0, 0, None
    for at_s, total in moved:
        while moved[first + 1 : first + 2] and moved[first + 1][0] <= at_s - STILL_S:
            first += 1
        before_s, before = moved[first]
        if before_s > at_s - STILL_S or total - before > STILL_BYTES:
            since_s = None
            continue
        since_s = before_s if since_s is None else since_s
        longest_s = max(longest_s, at_s - since_s)
    return longest_s


def faults(bench: Bench) -> Result:
    """Every fault of links against every workload and client of several links: how runs end."""
    programs = bench.scenarios or [*PROGRAMS]
    asked = bench.clients or (SURE[::4] if bench.quick else (*SURE, *UNSURE))
    found = [one for program in programs for one in _endings(bench, program, asked)]
    shown = table("workload", "runs", *KINDS)
    for program in programs:
        count = Counter(one.kind for one in found if one.program == program)
        shown.add_row(program, str(count.total()), *(str(count[kind]) for kind in KINDS))
    bench.console.print(shown)
    bad = [one for one in found if one.kind not in ("whole", "slow", "refused")]
    for one in (*bad, *(one for one in found if one.kind == "slow")):
        why = f"{one.took_s:.1f} s" if one.failure is None else one.failure
        why += f", still for {one.still_s:.0f} s" if one.still_s else ""
        bench.say(f"{one.kind}: {one.program}, {one.fault}, {one.client}: {why}")
    bench.say(target("no wrong file, nobody hangs, adaptive never fails", not bad))
    return {"runs": len(found), "bad": [asdict(one) for one in bad]}


def _endings(bench: Bench, program: str, asked: Sequence[str]) -> list[Ending]:
    files = []
    for name, fault in LINK_FAULTS.items():
        path = bench.work / f"{program}-{name}.yaml"
        path.write_text(text(path.stem, PROGRAMS[program], fault))
        files.append(path)
    parallel = ("--parallel", bench.jobs) if bench.jobs else ()
    names = able(asked, program)
    if not names:
        return []
    done = bench.linklab("compare", *files, "-a", ",".join(names), *parallel)
    found = []
    for name, one in zip(LINK_FAULTS, done.json["comparisons"], strict=True):
        for row in one["rows"]:
            who, took_s = row["algorithm"], row["download_s"]
            run = f"{program}-{name}-{who}-seed1"
            queues = f"{run}/queues.jsonl"
            failure = next(iter(row["failures"]), None)
            still, ended = 0.0, failure is None or HUNG not in failure
            is_late = took_s is None or took_s > LONGEST_S
            if ended and is_late and (done.run_dir / queues).exists():
                still = still_s(moved_of(done.lines(queues), program))
            has_outcome = (done.run_dir / run / outcome.FILE).exists()
            found.append(Ending(program, name, who, took_s, failure, still, has_outcome))
    return found


def moved_of(samples: Iterable[dict[str, Any]], program: str) -> Moved:
    """Returns the bytes that the queues of the program's direction had sent over time."""
    way = "up" if program == "upload" else "down"
    totals: dict[float, int] = defaultdict(int)
    for sample in samples:
        if sample["direction"] == way:
            totals[sample["t_s"]] += sample["sent_bytes"]
    return sorted(totals.items())
