"""Tests for what section `processors` measures by."""

import subprocess
import sys
from pathlib import Path

from bench import processors


def test_it_counts_processes_that_nobody_waits_for() -> None:
    busy = (
        "import os, time\nwhile time.process_time() < 2: pass\nos.write(1, b'.')\ntime.sleep(100)"
    )
    with processors.timed() as took:
        # As bubblewrap's first process in its PID namespace: the kernel reaps what is below.
        words = [
            "unshare",
            "--user",
            "--pid",
            "--fork",
            "--kill-child=KILL",
            sys.executable,
            "-c",
            busy,
        ]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            process.kill()
    assert 1.5 < took.cpu_s < 4


def test_it_compares_all_files_but_those_of_the_moment(tmp_path: Path) -> None:
    for parent, word in (("native", "a"), ("emulated", "b")):
        run = tmp_path / parent / "run"
        run.mkdir(parents=True)
        for name in ("run.json", "console.log", "links.jsonl"):
            (run / name).write_text(word)
        (run / "client.jsonl").write_text("the same")
    native, emulated = (processors.digests(tmp_path / one) for one in processors.PROCESSORS)
    assert processors.differing(native, emulated) == ["run/links.jsonl"]
    del emulated["run/client.jsonl"]
    assert processors.differing(native, emulated) == ["run/client.jsonl", "run/links.jsonl"]
