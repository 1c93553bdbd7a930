"""Section `processors`: compares runs on this machine's processor with runs on an emulated one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import select
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from linklab.places.emulated import machine, qemu
from linklab.places.guest import boot, image, kernel
from linklab.scenario import Scenario, find

from bench.common import CORES, Bench, BenchError, Result, table, target, variant

PROCESSORS = ("native", "emulated")

APART = ("console.log", "run.json")
"""Files of a run that differ: the kernel's messages, and the moment and processor of the run."""

RUNS = 10

_SAMPLED_S = 0.1


def cases() -> tuple[tuple[Scenario, str], ...]:
    """Returns scenarios and clients, those of short runs first."""
    return (
        (find("emptcp-256kb-good-good"), "alg3"),
        (variant("static-80-50", "static-80-50-10-mb", size_bytes=10_000_000), "alg3"),
        (variant("hs-s7", "hs-s7-20-mb", size_bytes=20_000_000), "alg3"),
        (find("emptcp-16mb-good-bad"), "mptcp"),
        (find("hs-s7"), "alg3"),
    )


def processors(bench: Bench) -> Result:
    """The same runs on this processor and on an emulated one: every file, and the time they take."""
    count = bench.runs or (2 if bench.quick else RUNS)
    chosen = [one for one in cases() if bench.scenarios is None or one[0].name in bench.scenarios]
    bench.say(
        f"seeds 1 to {count}, {min(CORES, count)} at a time, one machine a core; load average "
        f"{os.getloadavg()[0]:.1f}\nseconds are a run's share of the command, boots included"
    )
    rows: list[Result] = [_boots(bench)]
    shown = table("", *("wall s", "", "processor s", ""), "files", "the same")
    shown.add_row("", *PROCESSORS, *PROCESSORS)
    for scenario, client in chosen:
        rows.append(_case(bench, scenario, client, count))
        bench.note(f"{rows[-1]['title']}: {rows[-1]['same_files']} files of {rows[-1]['files']}")
    for row in rows:
        seconds = [f"{row[f'{one}_{what}']:.2f}" for what in ("s", "cpu_s") for one in PROCESSORS]
        compared = [str(row[name]) for name in ("files", "same_files") if name in row]
        shown.add_row(row["title"], *seconds, *compared)
    bench.console.print(shown)
    different = [name for row in rows for name in row.get("differing", [])]
    bench.say(target("every file the same, byte for byte", not different))
    if different:
        bench.say(f"[red]not: {', '.join(different)}[/red]")
    return {"runs": count, "apart": APART, "rows": rows}


def _case(bench: Bench, scenario: Scenario, client: str, count: int) -> Result:
    """Runs all seeds on both processors. Returns the seconds of a run, and what differs."""
    row: Result = {"title": f"{scenario.name}, {client}"}
    files: dict[str, Mapping[str, str]] = {}
    path = bench.write(scenario)
    for processor in PROCESSORS:
        words = ("compare", path, "-a", client, "--runs", count, "--processor", processor)
        before = os.getloadavg()[0]
        with timed() as took:
            done = bench.linklab(*words)
        files[processor] = digests(done.run_dir)
        row |= _seconds(processor, took, count) | {f"{processor}_load": before}
    different = differing(*files.values())
    whole = len({name for one in files.values() for name in one})
    return {**row, "files": whole, "same_files": whole - len(different), "differing": different}


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Returns the names of files that differ, or that only one of the runs has."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def digests(parent: Path) -> dict[str, str]:
    """Returns the hash of each compared file below a directory."""
    return {
        str(path.relative_to(parent)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in parent.rglob("*")
        if path.is_file() and path.name not in APART
    }


def _boots(bench: Bench) -> Result:
    """Measures what is no download: the machine's own boot and end, then a guest that does nothing."""
    row: Result = {"title": "a guest that does nothing"}
    for processor in PROCESSORS:
        words = ("exec", "hs-s7", "--processor", processor, "--", "true")
        bench.linklab(*words)  # Makes image, kernels and payload, and warms the page cache.
        with timed() as took:
            bench.linklab(*words)
        row |= _seconds(processor, took, 1)
    with timed() as took:
        _machine_alone()
    bench.say(f"the machine's boot alone: {took.wall_s:.2f} s, {took.cpu_s:.2f} s of processor")
    return row | _seconds("machine", took, 1)


def _seconds(title: str, took: Took, runs: int) -> Result:
    return {f"{title}_s": took.wall_s / runs, f"{title}_cpu_s": took.cpu_s / runs}


def _machine_alone() -> None:
    made = machine.Machine(
        qemu.find(),
        kernel.ensure(recipe=kernel.MACHINE),
        image.ensure("guest"),
        boot.BASE_MEMORY_BYTES,
        (),
    )
    with contextlib.closing(made):
        made.start(":\n")
        select.select([made], [], [])
        said = made.ended()
    if said:
        raise BenchError(said)


@dataclass
class Took:
    """Wall and processor seconds."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@contextlib.contextmanager
def timed() -> Iterator[Took]:
    """Measures the processes that start and end in the block.

    When a guest's PID namespace ends, nobody waits for its processes, so nobody learns their
    processor time. It is sampled while they run.
    """
    took = Took()
    sampled: dict[int, float] = {}
    has_ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(sampled, has_ended))
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    sampler.start()
    try:
        yield took
    finally:
        has_ended.set()
        sampler.join()
    took.wall_s = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    waited_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    took.cpu_s = waited_s + sum(sampled.values())


def _sample(sampled: dict[int, float], has_ended: threading.Event) -> None:
    """Notes the processor seconds of each process below this one in another PID namespace."""
    own = Path("/proc/self/ns/pid").readlink()
    while not has_ended.wait(_SAMPLED_S):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if Path(f"/proc/{process.pid}/ns/pid").readlink() != own:
                    spent = process.cpu_times()
                    sampled[process.pid] = spent.user + spent.system
