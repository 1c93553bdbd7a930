from pathlib import Path

import pytest

from linklab.campaign import cluster
from linklab.commands import campaign
from linklab.commands.cli import main
from linklab.places import choice
from linklab.runs import runner
from linklab.runs.matrix import Campaign
from linklab.runs.run_figures import RunFigures
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario


def test_programs_of_the_users_have_rows_too(small: Scenario) -> None:
    requests = (
        RunRequest(small, "alg3", 1),
        RunRequest(small, None, 1, command=("true",), name="mine"),
        RunRequest(small, "alg3", 2),
    )
    figures = RunFigures(1.0, 8e6, 0.5, 0.5, None, {}, 0.0)
    results: dict[str, RunFigures | str] = {
        requests[0].label: figures,
        requests[1].label: "no luck",
        requests[2].label: figures,
    }
    (made,) = campaign.comparisons(Campaign("c", "", Path("c.yaml"), requests), results)
    rows = {row.algorithm: row for row in made.rows}
    assert list(rows) == ["alg3", "mine"]
    assert rows["alg3"].runs == 2
    assert rows["mine"].failures == ("no luck",)


def test_a_file_that_is_wrong_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("name: sweep\nmatrices: []\n")
    assert main(["campaign", str(file)]) == 2
    assert f"{file}:2: matrices: there is nothing to run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--tls-ca", "x"),
        ("--scheduler", "tls://127.0.0.1:1", "--tls-ca", "x"),
        ("--tls-ca", "x", "--tls-cert", "x", "--tls-key", "x"),
    ],
)
def test_certificates_go_together_and_with_a_scheduler(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["campaign", "x.yaml", *words]) == 2
    assert "go together, and with --scheduler" in capsys.readouterr().err


def test_an_emulated_machine_needs_more_memory(
    small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed: list[int] = []
    workers: list[int] = []

    def side_by_side(memory: int) -> int:
        needed.append(memory)
        return 3

    monkeypatch.setattr(runner, "side_by_side", side_by_side)
    monkeypatch.setattr(cluster, "embedded", workers.append)
    planned = Campaign("c", "", Path("c.yaml"), (RunRequest(small, "alg3", 1),))
    for processor in ("native", "emulated"):
        monkeypatch.setenv(choice.PROCESSOR, processor)
        campaign.on_this_machine(planned, 8)
    assert workers == [3, 3]
    assert needed[1] - needed[0] == 192 << 20
