"""Tests commands on run directories that strangers have changed: each ends soon, and names in one
line the file that it cannot read.

LINKLAB_HOSTILE=1 tries all combinations, for hours.
"""

import itertools
import os
import random
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from conftest import TEST_ALL
from hostile_runs import changed, changes, whole_run
from linklab.analysis.tables import TABLES
from linklab.commands import cli

MOST_S = {signal.ITIMER_PROF: 60.0, signal.ITIMER_REAL: 600.0}
"""The seconds that a command may compute, and take on a busy machine. The limits allow a run of a
week."""

MOST_BYTES = 8 << 30
"""The most address space that a command may ask for. V8, which draws charts, reserves some GB."""

ONE_IN = int(os.environ.get("LINKLAB_HOSTILE", "400" if TEST_ALL else "1200"))
"""One in this many combinations of change and command is tried."""

ALWAYS = {
    "run.json :1 shift_s = 1e+308",
    "client.json :1 download_ns = 1e+308",
    "client.json :1 links.wifi.bytes = 9007199254740992",
    "queues.jsonl :1 direction = 'x'",
    "queues.jsonl :1 t_s = 1e+308",
    "links.jsonl :1 t_s = 604800",
    "links.jsonl sparse",
    "client.jsonl sparse_first",
    "client.jsonl long_line",
}
"""Changes that are tried with every command."""

COMMANDS = {
    "report": "report {run} -o {out}/page.html",
    "energy": "energy {run} --power",
    "publish": "publish {run} --output {out}/runs.om",
    "plot": "plot {run} -o {out}/plot.png",
    "plot-figure": "plot {run} --figure same/times -o {out}/figure.svg",
    "import": "import {run} --scenario {out}/made.yaml --force",
    "reproduce": "reproduce thesis --from {run}",
    **{
        f"export-{table}": f"export {{run}} --table {table} -o {{out}}/table.csv"
        for table in TABLES
    },
}


def command(name: str, run_dir: Path, out: Path) -> list[str]:
    return COMMANDS[name].format(run=run_dir, out=out).split()


class TooLongError(BaseException):
    """A command did not end."""


@contextmanager
def limited() -> Iterator[None]:
    """Raises TooLongError if a block takes too long, MemoryError if it asks for too much memory."""

    def late(_: int, __: FrameType | None) -> None:
        raise TooLongError

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, late)
    for timer, most_s in MOST_S.items():
        signal.setitimer(timer, most_s)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, before[1]))
    try:
        yield
    finally:
        for timer in MOST_S:
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def fault_of(code: int, said: str, run_dir: Path) -> str:
    """Returns what is wrong with the end of a command, "" if nothing is."""
    if code == 0:
        return ""
    lines = said.splitlines()
    named = [one for one in lines if one.startswith("linklab: ") and run_dir.name in one]
    if len(named) != 1 or len(named[0]) > 2_000 or code not in (1, 2):
        return f"ended with {code}: {said[:500]!r}"
    return ""


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_run(tmp_path_factory.mktemp("runs") / "whole")


def test_what_nobody_has_changed_is_read_by_every_command(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in COMMANDS:
        assert cli.main(command(name, run_dir, tmp_path)) == 0, (name, capsys.readouterr().err)


def test_whatever_was_changed_there_is_an_end_and_one_error(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    combinations = list(itertools.product(changes(run_dir), COMMANDS))
    random.Random(1).shuffle(combinations)
    always = [one for one in combinations if str(one[0]) in ALWAYS]
    assert len(always) == len(ALWAYS) * len(COMMANDS)
    tried = [*always, *combinations[::ONE_IN]]
    faults: list[str] = []
    for change, name in tried:
        copy = changed(run_dir, tmp_path / "changed", change)
        began_s = time.monotonic()
        try:
            with limited():
                code = cli.main(command(name, copy, tmp_path))
            fault = fault_of(code, capsys.readouterr().err, copy)
        except (Exception, TooLongError) as error:
            fault = f"{type(error).__name__}: {str(error)[:200]} {_place(error)}"
        if fault:
            passed_s = time.monotonic() - began_s
            faults.append(f"{name}: {change}: {fault} ({passed_s:.1f} s)")
            with capsys.disabled():
                print(faults[-1], flush=True)
    assert not faults, "\n".join([f"{len(faults)} of {len(tried)}:", *faults[:30]])


def _place(error: BaseException) -> str:
    trace, last = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "linklab/" in file:
            last = f"{file.rpartition('linklab/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return last
