import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from linklab.analysis.tables import TABLES
from linklab.analysis.tables_test import made
from linklab.commands.cli import main
from linklab.commands.export import EPILOG
from linklab.core.paths import PYTHON_PATH
from linklab.scenario import Scenario


def test_a_table_is_written(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    run, output = made(tmp_path / "run", small), tmp_path / "out.csv"
    assert main(["export", str(run), "--table", "requests", "-o", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: 2 rows of requests\n"
    assert output.read_text().startswith("run,scenario,contestant,seed,id,link,offset")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_names_need_not_be_utf_8(tmp_path: Path, small: Scenario, form: str) -> None:
    run = made(tmp_path / os.fsdecode(b"run\xff"), small)
    failed = made(tmp_path / os.fsdecode(b"failed\xff"), small)
    (failed / "outcome.json").write_text("{")
    output = tmp_path / os.fsdecode(b"out\xff." + form.encode())
    done = subprocess.run(
        [sys.executable, "-m", "linklab", "export", str(run), str(failed), "-o", str(output)],
        env={**os.environ, "PYTHONPATH": str(PYTHON_PATH), "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"out\\udcff.{form}: 2 rows of runs\n")
    assert b"run\\udcff" in output.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["RUN", "-o", "out.xls"], "allowed are names that end in .csv, .parquet"),
        (["nowhere", "-o", "out.csv"], "nowhere is no directory"),
        (["-o", "out.csv"], "no run directory is named"),
    ],
)
def test_what_cannot_be_written(
    words: list[str],
    said: str,
    tmp_path: Path,
    small: Scenario,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = made(tmp_path / "run", small)
    assert main(["export", *(str(run) if word == "RUN" else word for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_the_help_names_every_table() -> None:
    named = EPILOG.partition("tables, a row each: ")[2].partition("\n\n")[0]
    without_notes = re.sub(r"\s*\(.*?\)", "", named, flags=re.S)
    assert re.split(r",\s+", without_notes) == list(TABLES)


def test_the_schemas_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--schema"]) == 0
    assert "run.json" in json.loads(capsys.readouterr().out)
