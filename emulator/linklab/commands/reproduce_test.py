from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linklab import scenario
from linklab.commands import campaign, reproduce
from linklab.commands.cli import main
from linklab.commands.conftest import printed
from linklab.core import statistics
from linklab.report import publication
from linklab.report.publication import find as find_shipped
from linklab.runs import loaded_runs_test
from linklab.runs.job_test import JOB
from linklab.runs.matrix import Campaign
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario

TEXT = """\
name: ours
title: Ours
source: thesis
runs: 3
statements:
  - {metric: download, source: s, within: 10 %, values: {static-80-50: {alg3: 2 s, naive: 3 s}}}
"""


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A publication of a few runs instead of hundreds."""
    (tmp_path / "ours.yaml").write_text(TEXT)
    monkeypatch.setattr(publication, "names", lambda: ["ours"])
    monkeypatch.setattr(publication, "find", lambda name: publication.parse(TEXT, f"{name}.yaml"))


def made(parent: Path, who: str, seed: int, of: Scenario, **versions: str) -> Path:
    """A run directory, of 2 s."""
    manifest = {"scenario": of.name, "client": who, "seed": seed}
    name = f"{of.name}-{who}-seed{seed}"
    return loaded_runs_test.made(
        parent, name, of, **manifest, versions={**JOB.versions, **versions}
    )


def verdicts(said: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["verdict"], one["runs"]) for one in said["statements"]]


def test_run_directories_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = scenario.find("static-80-50")
    for who, seed in (("alg3", 1), ("alg3", 2), ("naive", 1), ("mptcp", 1)):
        made(tmp_path / "runs", who, seed, of)
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs"), "--json"]) == 0
    said = printed(capsys)
    assert verdicts(said) == [("holds", 2), ("fails", 1)]
    assert (said["runs"], said["failures"]) == (3, [])
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs")]) == 0
    assert "4 run directories, as they were there" in capsys.readouterr().out


def test_runs_that_only_statements_on_the_real_clock_need_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = (
        "  - {metric: cpu-median, source: s, each: [static-80-50], of: alg3, to: [single-wifi],"
        " is: less}\n"
    )
    monkeypatch.setattr(publication, "find", lambda _: publication.parse(TEXT + load, "ours.yaml"))
    of = scenario.find("static-80-50")
    for who in ("alg3", "single-wifi", "alg1"):
        made(tmp_path / "runs", who, 1, of)
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs"), "--json"]) == 0
    assert printed(capsys)["runs"] == 2, "nobody states anything of alg1"


def test_runs_of_what_a_scenario_was_before_are_left_out(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs", "alg3", 1, replace(small, name="static-80-50"))
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs"), "--json"]) == 0
    told = capsys.readouterr()
    assert '"no runs"' in told.out
    assert "1 runs are left out: their scenarios are not what they are now" in told.err


def test_different_builds_are_said_and_failed_runs_are_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = scenario.find("static-80-50")
    made(tmp_path / "runs", "alg3", 1, of, multilink_sha256="a")
    failed = made(tmp_path / "runs", "alg3", 2, of, multilink_sha256="b")
    (failed / "summary.json").unlink()
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs")]) == 1
    told = capsys.readouterr()
    assert "made with 2 different builds of multilink" in told.err
    assert f"{failed}: " in told.err


def test_the_help_says_how_many_runs_tell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"Clear verdicts need at least {statistics.LEAST_VALUES}" in told


@pytest.mark.parametrize("twice", [True, False])
def test_what_cannot_be_used_is_exit_code_2(
    tmp_path: Path, twice: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    of = scenario.find("static-80-50")
    made(tmp_path / "a", "alg3", 1, of)
    made(tmp_path / "b", "alg3", 1, of)
    second = "b" if twice else "c"
    words = ["reproduce", "ours", "--from", str(tmp_path / "a"), str(tmp_path / second)]
    assert main(words) == 2
    assert ("the same run twice" if twice else "cannot be read") in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--runs", "3"], ["--seed", "1"], ["--jobs", "2"], ["--out", "o"], ["--timeout", "0"]]
)
def test_how_to_run_does_not_go_with_runs_that_are_there(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs", "alg3", 1, scenario.find("static-80-50"))
    assert main(["reproduce", "ours", "--from", str(tmp_path / "runs"), *words]) == 2
    assert f"--from runs nothing: leave out {words[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "first"), [(["--seed", "5"], 5), (["--seed", "0"], 0), ([], 1)])
def test_what_statements_need_is_run_as_a_campaign(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    first: int,
) -> None:
    asked: list[RunRequest] = []

    def complete(
        planned: Campaign, out: Path, timeout_s: float | None, cluster: Callable[[], Any]
    ) -> campaign.Completed:
        assert (planned.name, timeout_s) == ("reproduce-ours", 9)
        asked.extend(planned.requests)
        results: dict[str, Any] = {}
        for one in planned.requests:
            made(out, str(one.client), one.seed, one.scenario)
            results[one.label] = loaded_runs_test.FIGURES
        results[asked[-1].label] = "hung"
        return campaign.Completed(results, 1, {"a": 2, "b": 1}, 12.0)

    monkeypatch.setattr(campaign, "complete", complete)
    monkeypatch.setattr("linklab.api.environment.require", lambda *_: None)
    words = ["reproduce", "ours", *given, "--timeout", "9", "--out", str(tmp_path / "o")]
    assert main(words) == 1
    told = capsys.readouterr()
    assert [(one.client, one.seed) for one in asked] == [
        (who, seed) for seed in range(first, first + 3) for who in ("alg3", "naive")
    ]
    assert "6 runs, 1 of which were there already, in 12 s on 2 workers" in told.out
    assert f"static-80-50-naive-seed{first + 2}: hung" in told.err


def test_the_help_says_how_many_runs_the_thesis_has() -> None:
    thesis = find_shipped("thesis")
    assert f"all of it: {len(thesis.cells) * thesis.runs} runs" in reproduce.EPILOG
