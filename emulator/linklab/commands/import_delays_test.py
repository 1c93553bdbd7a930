"""Tests of `linklab import --distribution` as called from a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from linklab import scenario
from linklab.commands.import_trace_test import imported
from linklab.importers import ping_test

MONROE = (
    "# mean 46 ms, deviation 16 ms\n" + " ".join(str(k * 16 - 16000) for k in range(2000)) + "\n"
)
HANDBOOK = Path(__file__).parents[2] / "handbook" / "how-to" / "import-a-trace.md"
COMMANDS = re.findall(r"^    linklab (import .* --distribution .*)$", HANDBOOK.read_text(), re.M)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the files that the handbook names."""
    monkeypatch.chdir(tmp_path)
    Path("ping-d.log").write_text(ping_test.delays())
    Path("monroe-4g.dist").write_text(MONROE)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_the_handbooks_commands_make_what_a_scenario_plays(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert imported(*command.split()[1:]) == 0
    first, top, *link = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[\w-]+\.dist: \d+ delays of [\w.-]+", first)
    keys = ", ".join(link).replace("delay: …, jitter: …", "delay: 46 ms, jitter: 16 ms")
    rtt = "" if "rtt:" in keys else "rtt: 9 ms, "
    Path("mine.yaml").write_text(
        f"name: mine\npayload: {{size: 1 MB}}\n{top}\n"
        f"links:\n  lte: {{down: 9 Mbit/s, up: 9 Mbit/s, {rtt}{keys}}}\n"
    )
    assert len(scenario.find("./mine.yaml").distributions) == 1


def test_the_handbook_has_both_kinds() -> None:
    assert len(COMMANDS) == 2


def test_json_has_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("ping-d.log", "--distribution", "a.dist", "--json") == 0
    read = json.loads(capsys.readouterr().out)
    assert read["entries"] == 4096
    assert read["keys"][0] == "distributions: {a: ./a.dist}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "monroe-4g.dist",
            "monroe-4g.dist:2: this is netem's table of a delay distribution; allowed",
        ),
        ("ping-d.log --distribution a.csv", "--distribution a.csv: allowed is a name with .dist"),
        ("ping-d.log --distribution A.dist", "--distribution A.dist: 'A' is"),
        (
            "ping-d.log --distribution monroe-4g.dist",
            "monroe-4g.dist: exists; allowed: another name",
        ),
        ("ping-d.log --distribution a.dist --bin 0", "ping-d.log: bins of 0.0 s; allowed: whole"),
        ("ping-d.log --distribution a.dist -o b", "--output: does not go with --distribution"),
        ("none --distribution a.dist", "none: No such file or directory"),
        ("ping-d.log --distribution none/a.dist", "none/a.dist: No such file or directory"),
    ],
)
def test_what_is_not_possible_is_refused(
    capsys: pytest.CaptureFixture[str], here: Path, words: str, said: str
) -> None:
    before = sorted(here.iterdir())
    assert imported(*words.split()) == 2
    assert capsys.readouterr().err.removeprefix("linklab: ").startswith(said)
    assert sorted(here.iterdir()) == before


def test_what_begins_with_a_number_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    replies = "".join(
        f"64 bytes from a-b (10.0.0.1): icmp_seq={k} ttl=64 time={k}.5 ms\n" for k in range(1, 9)
    )
    Path("replies.log").write_text(replies)
    assert imported("replies.log", "--distribution", "a.dist") == 0
    assert "rtt: 1.5 ms\n" in capsys.readouterr().out
    Path("down").write_text("# e-mail\n1\n2\n5\n")
    assert imported("down", "--distribution", "b.dist") == 2
    assert "'# e-mail' is not a whole number of milliseconds" in capsys.readouterr().err


def test_a_pipe_is_read_once() -> None:
    os.mkfifo("pipe")
    with subprocess.Popen(["timeout", "60", "sh", "-c", "cat ping-d.log >pipe"]):
        assert imported("pipe", "--distribution", "a.dist") == 0
    assert imported("ping-d.log", "--distribution", "b.dist") == 0
    assert Path("a.dist").read_text() == Path("b.dist").read_text().replace("ping-d.log", "pipe")


def test_a_wrong_table_is_refused_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.dist").write_text("-8192 0\n99999\n")
    assert imported("wrong.dist", "--distribution", "a.dist") == 2
    assert "wrong.dist:2: '99999' is no entry of a table; allowed" in capsys.readouterr().err
    Path("rates.csv").write_text("t,down_mbit\n0,1\n1,2\n")
    assert imported("rates.csv", "--distribution", "a.dist") == 2
    assert "rates.csv: has no delays that differ; needed: at least two" in capsys.readouterr().err
