from argparse import Namespace
from pathlib import Path

import pytest

from linklab.commands import compare, run
from linklab.commands.conftest import Runs, printed
from linklab.commands.options import UsageError
from linklab.runs import clients
from linklab.runs.runner import RunError

pytestmark = pytest.mark.usefixtures("no_library")


def test_a_comparison_runs_every_algorithm_with_every_seed(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.algorithms, options.runs, options.seed = "naive,single-lte", 3, 5
    options.scenarios *= 2  # One that is named twice is run once.
    assert compare.run(options) == 0
    assert [(one.client, one.seed) for one in runs.requests] == [
        ("naive", 5),
        ("naive", 6),
        ("naive", 7),
        ("single-lte", 5),
        ("single-lte", 6),
        ("single-lte", 7),
    ]
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
    options.algorithms = "naive,single-lte"
    runs.error = lambda request: "it hung" if request.client == "naive" else None
    assert compare.run(options) == 1
    naive, single = printed(capsys)["comparisons"][0]["rows"]
    assert (naive["runs"], naive["failures"]) == (0, ["it hung"])
    assert (single["runs"], single["failures"]) == (1, [])
    options.json = False
    assert compare.run(options) == 1
    out = capsys.readouterr().out
    assert "naive failed: it hung" in out
    assert "2 runs in 0 s; run directories: " in out


@pytest.mark.parametrize("name", ["no/r.html", "."])
def test_a_page_without_a_place_is_said_before_anything_runs(
    runs: Runs, options: Namespace, tmp_path: Path, name: str
) -> None:
    options.report = tmp_path / name
    with pytest.raises(UsageError, match="--report .*: (there is no directory|is a directory)"):
        compare.run(options)
    assert runs.requests == []


def test_a_page_may_lie_beside_the_runs_that_it_shows(runs: Runs, options: Namespace) -> None:
    options.report = options.out / "r.html"
    assert compare.run(options) == 0
    assert "naive" in options.report.read_text()


def test_a_page_that_cannot_be_written_costs_no_results(
    runs: Runs, options: Namespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options.report = tmp_path / "pages" / "r.html"
    options.report.parent.mkdir()
    runs.damage = lambda *_: options.report.parent.rmdir()
    with pytest.raises(FileNotFoundError, match=r"r\.html"):
        compare.run(options)
    (comparison,) = printed(capsys)["comparisons"]
    assert [row["algorithm"] for row in comparison["rows"]] == ["naive"]


def test_missing_programs_are_said_before_anything_runs(
    runs: Runs, options: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    options.algorithm, options.algorithms = "aria2-2", "aria2-2,curl-lte"
    monkeypatch.setattr(
        clients, "obstacle", lambda names, place: f"apt-get install {' '.join(names)}"
    )
    with pytest.raises(RunError, match="apt-get install aria2-2 curl-lte"):
        compare.run(options)
    with pytest.raises(RunError, match="apt-get install"):
        run.run(options)
    assert runs.requests == []
