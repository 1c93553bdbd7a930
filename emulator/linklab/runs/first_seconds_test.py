from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from linklab.core.frames import goodput_ratio
from linklab.energy import library
from linklab.runs import first_seconds, job, loaded_runs
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.loaded_runs_test import made
from linklab.runs.run_figures import FigureError
from linklab.scenario import Scenario
from linklab.scenario.workload import Upload, Workload


def read(parent: Path, scenario: Scenario) -> LoadedRun:
    """A run of 2 s, whose client starts with its scenario."""
    run_dir = made(parent, "a", scenario)
    job.write(msgspec.structs.replace(job.read(run_dir), shift_s=0.0), run_dir)
    return loaded_runs.Reader().read(run_dir)


def test_the_first_second_of_two(tmp_path: Path, small: Scenario) -> None:
    run = read(tmp_path, small)
    begun = first_seconds.of(run, 1.0, library.get("galaxy-s7"))
    assert (begun.client_name, begun.first_s) == (run.client_name, 1.0)
    assert begun.figures is not None
    payload_bytes = round(400_000 * goodput_ratio())
    assert begun.figures.links["wifi"].bytes == payload_bytes
    assert begun.figures.goodput_bps == payload_bytes * 8
    energy = begun.figures.energy
    assert energy is not None
    assert energy.tail_j == 0
    assert energy.joules == energy.main_j == pytest.approx(energy.joules_per_byte * payload_bytes)
    assert energy.links["wifi"].active_s == pytest.approx(1.0)
    assert first_seconds.of(run, 1.0).figures.energy is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first_s", "sent_bytes"), [(0.5, 200_000), (0.99999, 399_996), (1.5, 700_000)]
)
def test_between_two_samples_it_is_in_proportion(
    tmp_path: Path, small: Scenario, first_s: float, sent_bytes: int
) -> None:
    """Also where the sample that is due at the end comes some µs later."""
    begun = first_seconds.of(read(tmp_path, small), first_s)
    assert begun.figures is not None
    assert begun.figures.links["wifi"].bytes == round(sent_bytes * goodput_ratio())


def test_of_an_upload_what_went_up_counts(tmp_path: Path, small: Scenario) -> None:
    upload = replace(small, workload=Workload(upload=Upload()))
    begun = first_seconds.of(read(tmp_path, upload), 1.0)
    assert begun.figures is not None
    assert begun.figures.links["wifi"].bytes == round(400_000 * goodput_ratio())


def test_what_is_over_before_has_no_such_beginning(tmp_path: Path, small: Scenario) -> None:
    run = read(tmp_path, small)
    with pytest.raises(FigureError, match=r"over after 2\.0 s, before the 3 s .* larger payload"):
        first_seconds.of(run, 3.0)
