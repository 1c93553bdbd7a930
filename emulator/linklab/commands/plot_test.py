"""Tests of `linklab plot RUN`."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab import scenario
from linklab.commands import cli
from linklab.commands.options import UsageError
from linklab.runs import job
from linklab.runs.job_test import JOB

STATE = {
    "late_s": 0.0,
    "up": True,
    "down_rate_bps": 80_000_000,
    "up_rate_bps": 20_000_000,
    "delay_s": 0.005,
    "jitter_s": 0.0,
    "loss_ratio": 0.0,
}
COUNTERS = {"queue_bytes": 0, "dropped_packets": 0, "lost_packets": 0}


def state(t_s: float, link: str = "wifi", **changes: Any) -> dict[str, Any]:
    return {"t_s": t_s, "link": link, **STATE, **changes}


def sample(t_s: float, sent_bytes: int, link: str = "wifi", way: str = "down") -> dict[str, Any]:
    return {"t_s": t_s, "link": link, "direction": way, "sent_bytes": sent_bytes, **COUNTERS}


def write(file: Path, lines: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 2 s with 8 Mbit/s over Wi-Fi, which loses everything after a second."""
    directory = tmp_path / "hs-s7-alg3-seed1"
    directory.mkdir()
    write(directory / "links.jsonl", [state(0.0), state(0.0, "lte"), state(1.0, blackout=True)])
    write(
        directory / "queues.jsonl",
        [sample(1.0, 1_000_000), sample(1.0, 7, way="up"), sample(2.0, 1_000_000)],
    )
    (directory / "summary.json").write_text(
        '{"download_s": 1.5, "goodput_bps": 1e6, "oracle_s": 1.35, "efficiency": 0.9, '
        '"link_delta_s": null, "links": {}}'
    )
    return directory


def drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert cli.main(["plot", str(run), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(run: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said instead of each of the three kinds of drawing."""
    picture = run.parent / "plot.png"
    said = set()
    for words in (["--json"], [], ["--no-terminal", "-o", str(picture)]):
        assert cli.main(["plot", str(run), *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        said.add(captured.err)
    assert not picture.exists()
    (one,) = said
    assert one.count("\n") == 1
    return one.removeprefix("linklab: ").removesuffix("\n")


def test_what_a_run_recorded_is_drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = drawn(run, capsys)
    assert (plot["title"], plot["end_s"]) == ("hs-s7-alg3-seed1", 2.0)
    assert plot["finishes_s"] == {"download": 1.5}
    assert plot["outages"] == [{"link": "wifi", "start_s": 1.0, "end_s": 2.0}]
    assert plot["events"] == [{"t_s": 1.0, "link": "wifi", "text": "outage"}]
    wifi, lte, used = plot["panels"][0]["series"]
    assert (wifi["t_s"], wifi["value"]) == ([0.0, 1.0], [80.0, 0.0])
    assert (lte["link"], lte["t_s"], lte["value"]) == ("lte", [0.0], [80.0])
    assert (used["label"], used["t_s"], used["value"]) == ("Wi-Fi used", [0.0, 1.0], [8.0, 0.0])


def test_of_an_upload_what_went_up_is_drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "scenario.yaml").write_text(scenario.to_yaml(scenario.find("hs-s7+upload")))
    down, up, *_ = drawn(run, capsys)["panels"]
    assert [one["label"] for one in down["series"]] == ["Wi-Fi", "LTE"]
    used = up["series"][-1]
    assert (used["label"], used["t_s"], used["value"]) == ("Wi-Fi used", [0.0], [0.000056])


def test_a_run_that_started_later_is_over_later(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write(msgspec.structs.replace(JOB, shift_s=5.0), run)
    assert drawn(run, capsys)["finishes_s"] == {"download": 6.5}
    (run / "run.json").write_text("{}")
    assert "run.json: cannot be read: Object missing" in refused(run, capsys)


def test_a_run_in_the_terminal_and_as_a_picture(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = run.parent / "plot.png"
    assert cli.main(["plot", str(run), "-o", str(picture)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("hs-s7-alg3-seed1\n")
    assert "    1.500 s  download finished\n" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["--seed", "1"], ["--seconds", "1"]])
def test_a_run_is_drawn_as_it_was(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert cli.main(["plot", str(run), *words]) == 2
    assert f"is a run, drawn as it was: leave out {words[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--seed", "1"], ["--seconds", "1"], ["--json"]])
def test_a_figure_is_of_runs_that_are_there(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    output = run.parent / "f.svg"
    said = ["plot", str(run), "--figure", "hs-s7/times", "-o", str(output), *words]
    assert cli.main(said) == 2
    assert f"leave out {words[0]}" in capsys.readouterr().err


def test_a_scenario_is_drawn_with_seed_1_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    plots = []
    for words in ([], ["--seed", "1"], ["--seed", "0"]):
        assert cli.main(["plot", "ts", "--seconds", "1", "--json", *words]) == 0
        plots.append(json.loads(capsys.readouterr().out)["panels"])
    assert plots[0] == plots[1]
    assert plots[0] != plots[2]


def test_a_run_under_way_has_neither_figures_nor_whole_lines(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "summary.json").unlink()
    for name in ("links.jsonl", "queues.jsonl"):
        with (run / name).open("a") as file:
            file.write('{"t_s": 3.0, "li')
    plot = drawn(run, capsys)
    assert (plot["end_s"], plot["finishes_s"]) == (2.0, {})


def test_a_run_without_samples_shows_its_capacity(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "queues.jsonl").unlink()
    series = drawn(run, capsys)["panels"][0]["series"]
    assert [one["label"] for one in series] == ["Wi-Fi", "LTE"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "Object missing required field `download_s`"),
        (b'{"download_s": null}', "Expected `float`, got `null` - at `$.download_s`"),
        (b'{"download_s": "\xff"}', ""),
    ],
)
def test_a_summary_that_is_none_is_named(
    run: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    (run / "summary.json").write_bytes(content)
    start = f"{run / 'summary.json'}: cannot be read: {said}"
    assert refused(run, capsys).startswith(start)


@pytest.mark.parametrize("states", [[], [state(0.0), state(0.0, "lte")]])
def test_where_nothing_was_recorded_nothing_is_drawn(
    run: Path, capsys: pytest.CaptureFixture[str], states: list[dict[str, Any]]
) -> None:
    write(run / "links.jsonl", states)
    write(run / "queues.jsonl", [])
    (run / "summary.json").unlink()
    nothing = f"{run}: nothing was recorded of the links: there is nothing to draw"
    assert refused(run, capsys) == nothing


def test_counters_of_a_link_that_has_no_states_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(run / "queues.jsonl", [sample(1.0, 9), sample(1.0, 9, "x")])
    said = f"{run}: queues.jsonl has the link 'x', which links.jsonl lacks"
    assert refused(run, capsys) == said


def test_a_name_with_dollars_is_no_formula(run: Path, tmp_path: Path) -> None:
    named = run.rename(tmp_path / r"a$\b$c")
    picture = tmp_path / "plot.png"
    assert cli.main(["plot", str(named), "--no-terminal", "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_run_that_failed_before_it_recorded_is_no_scenario(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in run.iterdir():
        file.unlink()
    (run / "run.json").write_text("{}")
    nothing = f"{run}: nothing was recorded of the links: there is nothing to draw"
    assert refused(run, capsys) == nothing


def test_a_directory_that_is_no_run_is_no_scenario_either(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run)
    run.mkdir()
    refused(run, capsys)


def test_a_directory_of_runs_is_answered_with_the_newest_one(tmp_path: Path) -> None:
    for number, name in enumerate(("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / job.FILE).write_text("{}")
        os.utime(tmp_path / name / job.FILE, (number, number))
    options = cli.parser().parse_args(["plot", str(tmp_path)])
    with pytest.raises(UsageError, match=r"holds 2 runs; allowed: one of them, such as .*/a\. "):
        options.module.run(options)
