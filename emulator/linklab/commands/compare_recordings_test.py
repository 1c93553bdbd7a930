from argparse import Namespace
from pathlib import Path

import pytest

from linklab.commands import compare, report
from linklab.commands.conftest import Runs, printed
from linklab.commands.options import UsageError
from linklab.field import simulated_for_test as simulated
from linklab.field.simulated_for_test import SimulatedLink
from linklab.runs.runner import RunRequest

SIZE = 20_000_000
BOTH = (SimulatedLink(), SimulatedLink("lte", "rmnet0"))


@pytest.fixture
def drive(tmp_path: Path, options: Namespace, runs: Runs) -> Path:
    """A recording of 10 s, and a lab in which everybody takes 11 s."""

    def record(request: RunRequest, run_dir: Path) -> None:
        simulated.run_dir(run_dir, BOTH, 11.0, SIZE)

    runs.damage = record
    directory = simulated.run_dir(tmp_path / "My Drive", BOTH, 10.0, SIZE)
    options.scenarios, options.algorithms = [str(directory)], None
    return directory


def test_a_recording_is_laid_beside_who_was_recorded(
    drive: Path, runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.runs = 2
    assert compare.run(options) == 0
    assert [(one.client_name, one.seed, one.scenario.name) for one in runs.requests] == [
        ("alg3", 1, "recorded-my-drive"),
        ("alg3", 2, "recorded-my-drive"),
    ]
    read = printed(capsys)
    (beside,) = read["predictions"]
    assert (beside["recording"], beside["contestant"]) == (str(drive), "alg3")
    assert (beside["measured_s"], beside["predicted_s"]) == (10.0, 11.0)
    assert beside["error_ratio"] == pytest.approx(0.1)
    assert "A download does not show what went up" in beside["notes"]
    assert [one["link"] for one in beside["links"]] == ["wifi", "lte"]
    (comparison,) = read["comparisons"]
    assert [row["algorithm"] for row in comparison["rows"]] == ["alg3"]


def test_a_page_that_cannot_be_written_costs_no_results(
    drive: Path,
    options: Namespace,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(report, "of_directories", full)
    with pytest.raises(OSError, match="no space"):
        compare.run(options)
    assert len(printed(capsys)["predictions"]) == 1


def test_others_are_predicted(
    drive: Path, runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.algorithms, options.json = "alg1,alg3", False
    assert compare.run(options) == 0
    assert [one.client_name for one in runs.requests] == ["alg3", "alg1"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"{drive} alg3 as recorded" in said
    assert "download, s 10.000 11.000 +10.0" in said
    assert "alg1" in said


def test_two_directories_of_one_name_are_two_scenarios(
    drive: Path, runs: Runs, options: Namespace, tmp_path: Path
) -> None:
    other = simulated.run_dir(tmp_path / "other" / "My Drive", BOTH, 10.0, SIZE)
    options.scenarios.append(str(other))
    assert compare.run(options) == 0
    assert [one.scenario.name for one in runs.requests] == [
        "recorded-my-drive",
        "recorded-my-drive-2",
    ]


def test_what_cannot_be_compared_is_said(
    drive: Path, runs: Runs, options: Namespace, tmp_path: Path
) -> None:
    def refused(*scenarios: object, **more: object) -> str:
        changed = Namespace(**{**vars(options), "scenarios": list(map(str, scenarios)), **more})
        with pytest.raises(UsageError) as caught:
            compare.run(changed)
        return str(caught.value)

    half = simulated.run_dir(tmp_path / "half", BOTH)
    (half / "client.json").unlink()
    assert refused(half).startswith(f"{half}: has no client.json; needed: what `multilink get")
    failed = simulated.run_dir(tmp_path / "failed", BOTH)
    summary = failed / "client.json"
    summary.write_text(summary.read_text().replace('"complete"', '"failed"'))
    assert refused(failed).startswith(f"{failed}: the recorded download is not complete")
    unknown = simulated.run_dir(tmp_path / "unknown", BOTH, algorithm="tomorrows")
    assert refused(unknown) == f"{unknown}: nobody in the lab does what was recorded there"
    assert "allowed: scenarios alone, or recordings alone" in refused(drive, "hs-s7")
    assert "no algorithm is called 'single-lte'" in refused(
        simulated.run_dir(tmp_path / "one", BOTH[:1]), algorithms="single-lte"
    )
    assert "no algorithm is called ''" in refused(drive, algorithms="")
    assert refused("hs-s7", kind=["wifi=lte"]).startswith("--kind: a scenario says what its links")
    assert runs.requests == []
