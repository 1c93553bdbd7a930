"""Tests a full disk: each command that writes a file names it in one line, and leaves no partial
file."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import called, ran
from hostile_runs import whole_run

COMMANDS = {
    "report": "report {run} -o {out}/page.html",
    "export-csv": "export {run} --table samples -o {out}/table.csv",
    "export-parquet": "export {run} --table samples -o {out}/table.parquet",
    "publish": "publish {run} --output {out}/runs.om",
    "plot": "plot {run} --no-terminal -o {out}/plot.png",
    "plot-figure": "plot {run} --figure same/times -o {out}/figure.svg",
    "import": "import {run} --scenario {out}/made.yaml",
    "calibrate": "calibrate energy {rows} --model galaxy-s7 --terms lte.active -o {out}/model.yaml",
    "run": "run static-80-50 -a alg3 --out {out}/runs",
}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_run(tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """Makes a directory on a full file system of its own."""
    out = tmp_path / "full"
    out.mkdir()
    mounted = ran(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(out)])
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        with (out / "filler").open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(4096))
                except OSError:
                    break
        yield out
    finally:
        subprocess.run(["umount", str(out)], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_with_the_file(name: str, run_dir: Path, full: Path) -> None:
    words = COMMANDS[name].format(
        run=run_dir, out=full, rows=Path(__file__).parents[1] / "profiles/energy/galaxy-s7.csv"
    )
    done = called(full.parent, *words.split())
    complaints = [one for one in done.stderr.splitlines() if one.startswith("linklab: ")]
    assert done.returncode == 2, done
    assert len(complaints) == 1, done
    assert "No space left on device" in complaints[0]
    assert str(full) in complaints[0]
    assert "Traceback" not in done.stderr
    left = [file for file in full.rglob("*") if file.is_file() and "runs" not in file.parts]
    assert {file.name for file in left if file.stat().st_size} == {"filler"}
