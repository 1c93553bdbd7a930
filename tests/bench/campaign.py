"""Section `campaign`: runs the thesis' campaign on two workers, and on one."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import split

from bench.common import REPOSITORY, Bench, BenchError, Result, environment, table, target

DASK = Path(sys.executable).with_name("dask")
THESIS = REPOSITORY / "profiles" / "campaigns" / "thesis.yaml"


def campaign(bench: Bench) -> Result:
    """Every published figure of the thesis, ten seeds each, on two worker processes and on one."""
    file = bench.work / "thesis.yaml"
    text = THESIS.read_text()
    file.write_text(text.replace("runs: 10", "runs: 1") if bench.quick else text)
    reports = {workers: _run(bench, file, workers) for workers in (2, 1)}
    shown = table("workers", "runs", "wall s", "virtual s", "virtual s per real s")
    for workers, report in reports.items():
        virtual_s = sum(one["download_s"] for one in _summaries(report).values())
        wall_s = report["wall_s"]
        report["virtual_s"] = virtual_s
        shown.add_row(
            str(workers),
            str(report["runs"]),
            f"{wall_s:.0f}",
            f"{virtual_s:.0f}",
            f"{virtual_s / wall_s:.2f}",
        )
    bench.console.print(shown)
    two, one = (_summaries(reports[workers]) for workers in (2, 1))
    differing = sorted(label for label in one | two if one.get(label) != two.get(label))
    scaling = reports[1]["wall_s"] / reports[2]["wall_s"]
    bench.say(
        f"two workers are {scaling:.2f} times as fast as one; "
        f"{len(one) - len(differing)} of {len(one)} results are the same; "
        + target("all the same", not differing)
    )
    return {
        "wall_s": {str(workers): report["wall_s"] for workers, report in reports.items()},
        "runs": reports[1]["runs"],
        "runs_per_worker": reports[2]["runs_per_worker"],
        "virtual_s": reports[1]["virtual_s"],
        "scaling": scaling,
        "differing": differing,
    }


def _run(bench: Bench, file: Path, workers: int) -> Result:
    """Runs the campaign with this number of worker processes over TCP. Returns its report."""
    out = bench.work / f"campaign-{workers}"
    bench.note(f"{file.stem} on {workers} worker(s)")
    with _cluster(bench.work, workers) as address:
        done = subprocess.run(
            [
                sys.executable,
                *split("-m linklab campaign"),
                file,
                "--scheduler",
                address,
                "--out",
                out,
                "--json",
            ],
            stdout=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    if done.returncode != 0:
        raise BenchError(f"the campaign on {workers} workers ended with {done.returncode}")
    report: Result = json.loads(done.stdout)
    return report


def _summaries(report: Result) -> dict[str, Result]:
    """Returns the figures of every run."""
    found = Path(report["run_dir"]).glob("*/summary.json")
    return {path.parent.name: json.loads(path.read_text()) for path in found}


@contextlib.contextmanager
def _cluster(work: Path, workers: int) -> Iterator[str]:
    """Starts a Dask scheduler and its workers on loopback. Yields the scheduler's address."""
    file = work / "scheduler.json"
    file.unlink(missing_ok=True)
    processes: list[subprocess.Popen[bytes]] = []

    def start(what: str, *options: str) -> None:
        loopback = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        argv: list[str] = [str(DASK), what, "--scheduler-file", str(file), *loopback, *options]
        processes.append(
            subprocess.Popen(
                argv,
                stderr=subprocess.DEVNULL,
                cwd=work,
                env=environment(DASK_TEMPORARY_DIRECTORY=str(work)),
            )
        )

    try:
        start("scheduler", "--port", "0")
        deadline = time.monotonic() + 30
        while not (file.exists() and file.stat().st_size):
            if time.monotonic() > deadline:
                raise BenchError("the Dask scheduler did not start")
            time.sleep(0.05)
        for _ in range(workers):
            start("worker", "--nthreads", "1")
        yield str(json.loads(file.read_text())["address"])
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
