"""Tests `linklab regress` from the command line to files and exit codes, with simulated runs."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from linklab.commands import cli, report, running
from linklab.commands.conftest import Runs, printed
from linklab.places.choice import Environment
from linklab.regression import baseline, fingerprint
from linklab.regression.fingerprint import Fingerprint
from linklab.runs import beside_baseline, runner
from linklab.scenario import Scenario, to_yaml

SUITE = """\
name: mine
algorithms: [curl-wifi, own]
scenarios: [{scenario: small.yaml}]
exec:
  - {name: own, command: "{suite}/own {url}"}
verify: 1
"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small: Scenario) -> Runs:
    made = Runs()
    made.elapsed_s = lambda _: 0.2
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "run_all", made)
    monkeypatch.setattr(
        running,
        "choose_place",
        lambda *_: Environment("guest", "virtual", "figures repeat exactly"),
    )
    monkeypatch.setattr(
        fingerprint, "taken", lambda _: Fingerprint({"Go": "go1.26"}, {"small": "a"})
    )
    (tmp_path / "small.yaml").write_text(to_yaml(small))
    (tmp_path / "mine.yaml").write_text(SUITE)
    return made


def regress(*words: str) -> int:
    return cli.main(["regress", "mine.yaml", *words])


@pytest.fixture
def based(runs: Runs, capsys: pytest.CaptureFixture[str]) -> Runs:
    """The runs' figures are the baseline."""
    assert regress("--update", "--reason", "first") == 0
    capsys.readouterr()
    runs.requests.clear()
    return runs


def test_the_first_baseline(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("--update", "--reason", " the\nfirst ") == 0
    made = baseline.load(Path("mine.baseline.yaml"))
    assert made.reason == "the first"
    assert [str(cell) for cell in made.cells] == ["small curl-wifi seed 1", "small own seed 1"]
    assert made.fingerprint.programs == {"Go": "go1.26"}
    assert "2 downloads are the baseline now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exit_code", "code", "title", "errors"),
    [(0, 0, "no regression", 'errors="0"'), (7, 2, "no verdict", 'errors="2"')],
)
def test_the_first_baseline_has_reports_too(
    runs: Runs, exit_code: int, code: int, title: str, errors: str
) -> None:
    runs.exit_code = lambda _: exit_code
    words = ("--update", "--reason", "first", "--junit", "j.xml", "--markdown", "m.md")
    assert regress(*words) == code
    assert errors in Path("j.xml").read_text()
    told = Path("m.md").read_text()
    assert told.startswith(f"### linklab: {title}\n")
    assert ("small own seed 1: the client ended with 7: err" in told) == (exit_code == 7)


def test_every_cell_is_run_and_one_twice(based: Runs) -> None:
    assert regress() == 0
    assert len(based.requests) == 3
    (curl,) = {one.client for one in based.requests if one.client}
    assert curl == "curl-wifi"
    own = [one for one in based.requests if one.command]
    assert {one.name for one in own} == {"own"}
    assert own[0].command is not None
    assert own[0].command[0] == f"{Path.cwd()}/own"


def test_run_directories_say_how_far_their_figures_moved(based: Runs) -> None:
    based.elapsed_s = lambda request: 0.4 if request.client else 0.2
    regress()
    latest = sorted(Path("runs").glob("*-regress*"))[-1]
    found = {path.name: beside_baseline.read(path) for path in latest.iterdir()}
    moved = {
        name: (one.suite, {each.figure: each.bounds for each in one.movements})
        for name, one in found.items()
        if one is not None
    }
    assert len(moved) == 2  # What is run twice says it once.
    assert moved["small-own-seed1-2"] == ("mine", {"download time": 0.0, "efficiency": 0.0})
    suite, bounds = moved["small-curl-wifi-seed1"]
    assert suite == "mine"
    assert bounds["download time"] == pytest.approx(0.2 / 0.02)


def test_the_same_figures_are_no_regression(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--json") == 0
    read = printed(capsys)
    assert read["counts"] == {"same": 2, "better": 0, "worse": 0, "error": 0}
    assert read["virtual_s"] == pytest.approx(0.6)
    assert all(Path(cell["run_dir"], "summary.json").exists() for cell in read["cells"])


def test_a_slower_program_is_named_with_how_much(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    based.elapsed_s = lambda request: 0.4 if request.name == "own" else 0.2
    assert regress("--junit", "out/j.xml", "--markdown", "out/m.md") == 1
    said = capsys.readouterr().out
    assert "small own seed 1: download time 0.200 s -> 0.400 s (+100.0 %," in said
    assert "1 same, 1 worse" in said
    assert "<failure" in Path("out/j.xml").read_text()
    assert Path("out/m.md").read_text().startswith("### linklab: regression")


def test_a_program_that_fails_now_is_a_regression(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    based.exit_code = lambda request: 7 if request.name == "own" else 0
    assert regress() == 1
    assert "the download fails: the client ended with 7: err" in capsys.readouterr().out


def test_a_lab_that_hangs_is_no_regression_but_no_pass(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    based.error = lambda request: "the guest was still running" if request.name == "own" else None
    assert regress("--json") == 2
    assert printed(capsys)["counts"]["error"] == 1


def outcome_is_a_directory(run_dir: Path) -> None:
    (run_dir / "outcome.json").unlink()
    (run_dir / "outcome.json").mkdir()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda run: (run / "outcome.json").unlink(), "the run has not ended"),
        (outcome_is_a_directory, "Is a directory"),
        (lambda run: (run / "outcome.json").write_text('{"exit'), "Input data was truncated"),
        (lambda run: (run / "scenario.yaml").write_text("name: ["), "scenario.yaml:2: not valid"),
    ],
)
def test_a_run_that_cannot_be_read_is_an_error_of_its_cell_alone(
    based: Runs, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], said: str
) -> None:
    based.damage = lambda request, run_dir: damage(run_dir) if request.name == "own" else None
    assert regress("--json") == 2
    report = printed(capsys)
    assert report["counts"] == {"same": 1, "better": 0, "worse": 0, "error": 1}
    (broken,) = [cell for cell in report["cells"] if cell["status"] == "error"]
    assert said in broken["reason"]


def test_figures_that_do_not_repeat_are_an_error(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cells of a suite of two that is verified once: the second."""
    taken = iter((0.2, 0.200000001, 0.2))
    based.elapsed_s = lambda request: next(taken) if request.name == "own" else 0.2
    assert regress() == 2
    assert "a second run of the same differs: 0.200000001 s" in capsys.readouterr().out


def test_what_a_second_run_died_of_is_said(based: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    ends = iter(("no room", None))
    based.error = lambda request: next(ends) if request.name == "own" else None
    assert regress() == 2
    assert "; then no room" in " ".join(capsys.readouterr().out.split())


def test_another_fingerprint_runs_nothing_and_names_what_differs(
    based: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Fingerprint({"Go": "go1.27"}, {"small": "a"})
    monkeypatch.setattr(fingerprint, "taken", lambda _: other)
    assert regress("--junit", "j.xml", "--markdown", "m.md") == 2
    said = capsys.readouterr().err
    assert "go1.26 then, go1.27 now" in Path("j.xml").read_text()
    assert Path("m.md").read_text().startswith("### linklab: no verdict")
    assert "Re-baseline: --update --reason TEXT\n  Go: go1.26 then, go1.27 now" in said
    assert not based.requests
    assert regress("--update", "--reason", "Go 1.27") == 0
    assert baseline.load(Path("mine.baseline.yaml")).fingerprint == other


def test_without_a_baseline_nothing_is_run(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress() == 2
    assert "there is no baseline yet" in capsys.readouterr().err
    assert not runs.requests


@pytest.mark.parametrize(
    ("algorithms", "said"),
    [
        ("curl-wifi, own, curl-lte", "small curl-lte seed 1 has no baseline: re-baseline"),
        ("curl-wifi", "small own seed 1 is in the baseline only: re-baseline"),
    ],
)
def test_cells_that_stand_alone_are_no_silent_pass(
    based: Runs, capsys: pytest.CaptureFixture[str], algorithms: str, said: str
) -> None:
    Path("mine.yaml").write_text(SUITE.replace("curl-wifi, own", algorithms))
    assert regress() == 2
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_page_without_a_place_is_said_before_anything_runs(
    based: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--report", "no/r.html") == 2
    assert "--report no/r.html: there is no directory no" in capsys.readouterr().err
    assert not based.requests


def test_a_page_that_cannot_be_written_costs_no_verdict(
    based: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "r.html")

    monkeypatch.setattr(report, "of_directories", full)
    based.elapsed_s = lambda _: 0.4
    assert regress("--report", "r.html", "--junit", "j.xml") == 2
    said = capsys.readouterr()
    assert "2 worse" in said.out
    assert "No space left" in said.err
    assert Path("j.xml").exists()
    assert regress("--report", "r.html", "--update", "--reason", "slow") == 2
    assert baseline.load(Path("mine.baseline.yaml")).reason == "slow"


def test_what_failed_becomes_no_baseline(based: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("mine.baseline.yaml").read_text()
    based.exit_code = lambda request: 7 if request.name == "own" else 0
    assert regress("--update", "--reason", "x") == 2
    assert "small own seed 1: the client ended with 7" in capsys.readouterr().err
    assert Path("mine.baseline.yaml").read_text() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--update",), "--update needs --reason"),
        (("--update", "--reason", " "), "--update needs --reason"),
        (("--reason", "x"), "--reason goes with --update"),
        (("--real-clock", "--baseline", "x"), "leave out --baseline"),
        (("--real-clock", "--report", "r.html"), "runs no guests: leave out --report"),
        (("--real-clock", "--out", "runs"), "leave out --out"),
        (("--real-clock", "--jobs", "2"), "leave out --jobs"),
        (("--real-clock", "--shift", "0"), "leave out --shift"),
        (("--real-clock", "--timeout", "0"), "leave out --timeout"),
        (("--real-clock",), "has no `cost`"),
    ],
)
def test_requests_that_make_no_sense(
    runs: Runs, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert regress(*words) == 2
    assert said in capsys.readouterr().err
    assert not runs.requests
