import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.commands import compare
from linklab.places import choice
from linklab.places.choice import Place
from linklab.report import reproduction
from linklab.runs import job, runner
from linklab.runs.job_test import JOB
from linklab.runs.outcome import Outcome
from linklab.runs.runner import Finished, Request, RunError
from linklab.scenario import Scenario, to_yaml

NETWORK = {"wifi": 600_000, "lte": 500_000}


class Runs:
    """Stands for `runner.run_all`: every run takes 0.1 s times its seed and ends as told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.error: Callable[[Request], str | None] = lambda request: None
        self.exit_code = 0

    def __call__(
        self, requests: Sequence[Request], where: Place, parent: Path, *, parallel: int,
        timeout_s: float | None, started: Callable[[Request], None],
    ) -> Iterator[Finished]:  # fmt: skip
        self.requests += requests
        for request in requests:
            started(request)
        for request in reversed(requests):  # Runs end in any order.
            run_dir = runner.new_directory(parent, request.label)
            (run_dir / "scenario.yaml").write_text(to_yaml(request.scenario))
            (run_dir / "client.out").write_bytes(b"out \xff\x00")
            (run_dir / "client.err").write_text("err")
            manifest = msgspec.structs.replace(JOB, contestant=request.contestant, command=["x"])
            job.write(manifest, run_dir)
            outcome = Outcome(
                exit_code=self.exit_code, elapsed_ns=request.seed * 100_000_000,
                received_bytes=NETWORK, output_bytes=request.scenario.payload.size_bytes,
            )  # fmt: skip
            (run_dir / "outcome.json").write_bytes(msgspec.json.encode(outcome))
            yield Finished(request, run_dir, self.error(request), 0.5)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(runner, "run_all", made)
    monkeypatch.setattr(choice, "choose", lambda *_: Place("host", "real", "as asked"))
    monkeypatch.setattr(compare, "obstacle", lambda names: None)
    return made


@pytest.fixture
def options(small: Scenario, tmp_path: Path) -> Namespace:
    file = tmp_path / "small.yaml"
    file.write_text(to_yaml(small))
    return Namespace(
        scenario=str(file), scenarios=[str(file)], seed=1, runs=1, parallel=1, place="auto",
        clock="auto", out=tmp_path / "runs", timeout=None, shift=0.0, json=True,
    )  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_run_for_machines(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.run(options, "naive") == 0
    read = printed(capsys)
    assert (read["scenario"], read["algorithm"], read["seed"]) == ("small", "naive", 1)
    assert read["error"] is None
    assert read["figures"]["download_s"] == pytest.approx(0.1)
    assert read["wall_s"] == 0.5
    assert (Path(read["run_dir"]) / "summary.json").exists()


def test_a_run_for_people(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.json = False
    assert compare.run(options, "naive") == 0
    captured = capsys.readouterr()
    first, wifi, lte, last = captured.out.splitlines()
    assert first.startswith("small-naive-seed1: 0.100 s, 80.0 Mbit/s, efficiency ")
    assert wifi.split() == ["wifi", "0.5", "MB", "(55%)"]
    assert lte.split() == ["lte", "0.5", "MB", "(45%)"]
    assert last == f"run directory: {options.out}/small-naive-seed1"
    assert "place: host, clock: real (as asked)" in captured.err


def test_a_failed_run_says_why_and_where(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.error = lambda request: "H2O ended with -9"
    assert compare.run(options, "naive") == 1
    read = printed(capsys)
    assert (read["error"], read["figures"]) == ("H2O ended with -9", None)
    options.json = False
    assert compare.run(options, "naive") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "linklab: small-naive-seed1: H2O ended with -9\n" in captured.err
    assert f"run directory: {options.out}/small-naive-seed1-2\n" in captured.err


def test_a_client_that_failed_fails_its_run(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.exit_code = 3
    assert compare.run(options, "naive") == 1
    assert printed(capsys)["error"] == "the client ended with 3: err"


def test_a_comparison_runs_every_algorithm_with_every_seed(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.runs, options.seed = 3, 5
    options.scenarios *= 2  # One that is named twice is run once.
    assert compare.compare(options, ["naive", "single-lte"]) == 0
    assert [(one.contestant, one.seed) for one in runs.requests] == [
        ("naive", 5), ("naive", 6), ("naive", 7),
        ("single-lte", 5), ("single-lte", 6), ("single-lte", 7),
    ]  # fmt: skip
    read = printed(capsys)
    assert (read["place"], read["clock"], read["seed"], read["runs"]) == ("host", "real", 5, 3)
    (comparison,) = read["comparisons"]
    assert [row["algorithm"] for row in comparison["rows"]] == ["naive", "single-lte"]
    for row in comparison["rows"]:
        assert row["runs"] == 3
        assert row["download_s"] == pytest.approx(0.6)
    assert len(list(Path(read["run_dir"]).iterdir())) == 6


def test_one_failure_fails_a_comparison_but_not_the_others(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.error = lambda request: "it hung" if request.contestant == "naive" else None
    assert compare.compare(options, ["naive", "single-lte"]) == 1
    naive, single = printed(capsys)["comparisons"][0]["rows"]
    assert (naive["runs"], naive["failures"]) == (0, ["it hung"])
    assert (single["runs"], single["failures"]) == (1, [])
    options.json = False
    assert compare.compare(options, ["naive", "single-lte"]) == 1
    out = capsys.readouterr().out
    assert "naive failed: it hung" in out
    assert "2 runs in 0 s; run directories: " in out


def test_missing_programs_are_said_before_anything_runs(
    runs: Runs, options: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "obstacle", lambda names: "apt-get install aria2 curl")
    with pytest.raises(RunError, match="apt-get install aria2 curl"):
        compare.compare(options, ["aria2-2", "curl-lte"])
    with pytest.raises(RunError, match="apt-get install"):
        compare.run(options, "aria2-2")
    assert runs.requests == []


def test_a_program_of_the_user_s_is_reported(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.execute(options, ("curl", "{url}")) == 0
    read = printed(capsys)
    assert read["command"] == ["curl", "{url}"]
    assert read["error"] is None
    assert (read["exit_code"], read["elapsed_s"]) == (0, pytest.approx(0.1))
    assert read["received_bytes"] == NETWORK
    assert runs.requests[0].command == ("curl", "{url}")
    assert runs.requests[0].contestant is None


def test_what_a_program_of_the_user_s_writes_is_passed_on_byte_for_byte(
    runs: Runs, options: Namespace, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    options.json = False
    runs.exit_code = 7
    assert compare.execute(options, ("curl",)) == 1
    captured = capsysbinary.readouterr()
    assert captured.out == b"out \xff\x00"
    assert captured.err.startswith(b"place: host")
    assert b"errexit code 7 after 0.100 s; received: wifi 0.6 MB, lte 0.5 MB\n" in captured.err


def test_a_lab_that_failed_under_a_program_of_the_user_s_is_said(
    runs: Runs, options: Namespace, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    runs.error = lambda request: "H2O ended with -9"
    assert compare.execute(options, ("curl",)) == 1
    read = json.loads(capsysbinary.readouterr().out)
    assert (read["error"], read["scenario"], read["command"]) == (
        "H2O ended with -9", "small", ["curl"],
    )  # fmt: skip
    assert Path(read["run_dir"]).is_dir()
    assert [read[key] for key in ("exit_code", "elapsed_s", "received_bytes")] == [None] * 3
    options.json = False
    assert compare.execute(options, ("curl",)) == 1
    assert b"linklab: H2O ended with -9\n" in capsysbinary.readouterr().err


def test_a_terminal_does_not_obey_a_failure(
    runs: Runs, options: Namespace, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    options.json = False
    runs.error = lambda request: "H2O ended: \x1b]0;owned\x07\u202e"
    assert compare.execute(options, ("curl",)) == 1
    assert compare.run(options, "naive") == 1
    said = capsysbinary.readouterr().err.decode()
    assert said.count("H2O ended: \\x1b]0;owned\\x07\\u202e\n") == 2
    assert said.replace("\n", "").isprintable()


def test_every_command_shifts_its_clients(
    runs: Runs, options: Namespace, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    published(options, monkeypatch)
    options.shift = 0.25
    compare.run(options, "naive")
    compare.execute(options, ("curl",))
    compare.compare(options, ["naive"])
    compare.reproduce(options)
    assert [one.shift_s for one in runs.requests] == [0.25] * 4


def test_a_publication_is_run_with_every_seed(
    runs: Runs, options: Namespace, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    published(options, monkeypatch)
    options.runs, options.seed = 2, 5
    assert compare.reproduce(options) == 0
    assert [(one.contestant, one.seed) for one in runs.requests] == [("alg3", 5), ("alg3", 6)]
    read = printed(capsys)
    (cell,) = read["cells"]
    assert (cell["scenario"], cell["algorithm"], cell["published_s"]) == ("small", "alg3", 0.5)
    assert cell["measured_s"] == pytest.approx(0.55)
    assert read["failures"] == []


def published(options: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the scenario one that the publication `ours` has a figure of."""
    with Path(options.scenario).open("a") as file:
        file.write("published: [{algorithm: alg3, download: 0.5 s}]\n")
    monkeypatch.setitem(reproduction.PUBLICATIONS, "ours", (options.scenario,))
    options.publication = "ours"


def test_runs_on_the_real_clock_go_one_after_the_other() -> None:
    assert compare.most_side_by_side(Place("guest", "virtual", "")) >= 1
    assert compare.most_side_by_side(Place("guest", "real", "")) == 1
