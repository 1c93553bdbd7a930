import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.core import records
from linklab.core.link_state import DIRECTIONS
from linklab.core.records import QueueRecord
from linklab.core.records_test import sampled
from linklab.energy import library
from linklab.energy.model import EnergyModel
from linklab.models.trace import Trace
from linklab.runs import job, loaded_runs, summary
from linklab.runs.job_test import JOB
from linklab.runs.loaded_runs import RunDirectoryError
from linklab.runs.run_figures import LinkFigures, RunFigures
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.workload import Upload, Workload

FIGURES = RunFigures(
    download_s=2.0,
    goodput_bps=4e6,
    oracle_s=1.5,
    efficiency=0.75,
    link_delta_s=None,
    links={"wifi": LinkFigures(bytes=1_000_000, share=1.0, finish_s=2.0)},
)


def made(parent: Path, name: str, of: Scenario, **changed: Any) -> Path:
    """A whole run directory, with twenty times as much on the way of the payload as on the other.
    Its manifest is JOB, changed."""
    run_dir = parent / name
    run_dir.mkdir(parents=True)
    job.write(msgspec.structs.replace(JOB, **changed), run_dir)
    (run_dir / job.SCENARIO_FILE).write_text(to_yaml(of))
    (run_dir / summary.FILE).write_bytes(msgspec.json.encode(FIGURES))
    with (run_dir / records.FILES[QueueRecord]).open("wb") as file:
        for t_s, sent in ((1.0, 400_000), (2.0, 1_000_000)):
            for direction in DIRECTIONS:
                count = sent if direction == of.workload.direction else sent // 20
                file.write(records.line(sampled(t_s, "wifi", count, direction)))
    return run_dir


def test_a_run_without_energy_model_is_given_one(tmp_path: Path, small: Scenario) -> None:
    run_dir = made(tmp_path, "a", small)
    asked = []

    def model_of(of: Scenario) -> EnergyModel:
        asked.append(of.name)
        return library.get("galaxy-s7")

    figures = loaded_runs.Reader(model_of).read(run_dir).figures
    assert figures is not None
    assert figures.energy is not None
    assert asked == [small.name]
    assert figures.energy.links["wifi"].active_s == pytest.approx(2.0)
    assert replace(figures, energy=None) == FIGURES
    (run_dir / summary.FILE).write_bytes(msgspec.json.encode(figures))
    again = loaded_runs.Reader(lambda _: library.get("nexus-5"))
    assert again.read(run_dir).figures == figures, "its own"
    instead = (
        loaded_runs.Reader(lambda _: library.get("nexus-5"), instead=True).read(run_dir).figures
    )
    assert instead is not None
    assert instead.energy is not None
    assert instead.energy.model == "nexus-5"


def test_a_run_is_read_from_its_directory_alone(tmp_path: Path, small: Scenario) -> None:
    run_dir = made(tmp_path, "a", small)
    reader = loaded_runs.Reader()
    read = reader.read(run_dir)
    assert read.figures == FIGURES
    assert read.rates_bps == pytest.approx({"wifi": 4.8e6})
    assert (read.failure, read.scenario, read.client_name) == ("", small, JOB.client)
    other = reader.read(made(tmp_path, "b", small))
    assert other.scenario is read.scenario, "parsed once"


def test_of_an_upload_the_rates_are_those_of_what_went_up(tmp_path: Path, small: Scenario) -> None:
    upload = replace(small, workload=Workload(upload=Upload()))
    read = loaded_runs.Reader().read(made(tmp_path, "a", upload))
    assert read.rates_bps == pytest.approx({"wifi": 4.8e6})


def test_traces_of_one_name_are_the_same_by_their_content(tmp_path: Path, small: Scenario) -> None:
    reader = loaded_runs.Reader()
    read = []
    for name, rate in (("a", "8"), ("b", "80"), ("c", "8")):
        run_dir = made(tmp_path, name, small)
        (run_dir / job.TRACES).mkdir()
        (run_dir / job.TRACES / "lte-d.csv").write_text(f"t,down_mbit\n0,{rate}\n9,{rate}\n")
        (run_dir / job.SCENARIO_FILE).write_text(
            "name: small\npayload: {size: 1 MB}\nlinks:\n"
            f"  lte: {{down: 8 Mbit/s, up: 8 Mbit/s, rtt: 9 ms, trace: {{file: {job.TRACES}/lte-d.csv}}}}\n"
        )
        read.append(reader.read(run_dir).scenario)
    first, other, same = read
    assert same is first, "parsed once"
    trace = other.links["lte"].model(Trace)
    assert trace is not None
    assert trace.file == tmp_path / "b" / job.TRACES / "lte-d.csv"
    assert trace.samples[0].down_bps == pytest.approx(80e6)


def test_directories_are_found_in_given_ones(tmp_path: Path, small: Scenario) -> None:
    first, second = made(tmp_path, "b", small), made(tmp_path, "a", small)
    (tmp_path / "campaign.json").write_text("{}")
    (tmp_path / "c").mkdir()
    assert loaded_runs.found_in([tmp_path]) == [second, first]
    assert loaded_runs.found_in([first, tmp_path]) == [first, second]
    with pytest.raises(RunDirectoryError, match="no run directory, and none in it"):
        loaded_runs.found_in([tmp_path / "c"])
    with pytest.raises(RunDirectoryError, match="cannot be read: No such file"):
        loaded_runs.found_in([tmp_path / "d"])


def test_half_a_directory_and_another_format_are_refused(tmp_path: Path, small: Scenario) -> None:
    run_dir = made(tmp_path, "a", small)
    (run_dir / job.SCENARIO_FILE).unlink()
    with pytest.raises(RunDirectoryError, match=r"/a: is half a run directory: scenario.yaml is"):
        loaded_runs.Reader().read(run_dir)
    run_dir = made(tmp_path, "b", small)
    written = json.loads((run_dir / job.FILE).read_bytes())
    (run_dir / job.FILE).write_text(json.dumps({**written, "format": 2}))
    with pytest.raises(RunDirectoryError, match=r"/b/run.json: cannot be read: .*reads format 1"):
        loaded_runs.Reader().read(run_dir)
    (run_dir / job.FILE).unlink()
    made(tmp_path, "c", small)
    with pytest.raises(RunDirectoryError, match=r"/b: is half a run directory: run.json is"):
        loaded_runs.found_in([tmp_path])


def test_a_run_that_failed_says_why(tmp_path: Path, small: Scenario) -> None:
    run_dir = made(tmp_path, "a", small)
    (run_dir / summary.FILE).unlink()
    read = loaded_runs.Reader().read(run_dir)
    assert read.figures is None
    assert read.failure.startswith("the run has not ended, or linklab was killed: ")
    (run_dir / "error").write_text("the client was still running after 60 s\n")
    failure = loaded_runs.Reader().read(run_dir).failure
    assert failure == "the client was still running after 60 s"
    run_dir = made(tmp_path, "b", small)
    (run_dir / summary.FILE).write_text("{}")
    assert "summary.json" in loaded_runs.Reader().read(run_dir).failure
