"""Tests a scenario and its traces as files: all are written, or none and the old ones stay."""

from dataclasses import replace
from pathlib import Path

import pytest

from linklab.core.link_kinds import LTE, WIFI
from linklab.field import files, making, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.making import Made, MakingError
from linklab.field.simulated_for_test import SimulatedLink
from linklab.scenario import ScenarioError

BOTH = (SimulatedLink(), SimulatedLink("lte", "rmnet0"))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    recorded = recording.read(simulated.run_dir(tmp_path / "r", BOTH))
    return making.scenario("drive", [recorded], {"wifi": WIFI, "lte": LTE})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The user's own scenario, with traces."""
    for name in ("drive.yaml", "drive-wifi.csv", "drive-lte.csv"):
        (tmp_path / name).write_text("mine")
    return tmp_path / "drive.yaml"


def kept(file: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in file.parent.iterdir() if path.is_file()}


def test_a_scenario_that_cannot_be_read_back_replaces_nothing(made: Made, file: Path) -> None:
    before = kept(file)
    other = replace(made, scenario=replace(made.scenario, name="other"))
    with pytest.raises(ScenarioError, match=r"/drive\.yaml:2: name: 'other' differs from the file"):
        files.write(other, file, ["r"], overwrite=True)
    assert kept(file) == before


@pytest.mark.parametrize("name", ["drive-wifi.csv", "drive-lte.csv", "drive.yaml"])
def test_a_directory_in_a_file_s_place_stays_and_so_does_the_rest(
    made: Made, file: Path, name: str
) -> None:
    file.with_name(name).unlink()
    file.with_name(name).mkdir()
    before = kept(file)
    with pytest.raises(MakingError, match=f"{name}: is a directory; allowed: another name"):
        files.write(made, file, ["r"], overwrite=True)
    assert kept(file) == before


def test_what_was_there_is_replaced_as_a_whole(made: Made, file: Path) -> None:
    written = files.write(made, file, ["r"], overwrite=True)
    assert written.name == "drive"
    assert "mine" not in kept(file).values()
    assert {*kept(file)} == {"drive.yaml", "drive-wifi.csv", "drive-lte.csv"}


def test_a_source_s_name_stays_in_its_comment(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "drive.yaml"
    files.write(made, file, ["r\nname: other\udcff"])
    assert file.read_text().startswith("# imported from: r\\nname: other\\udcff, by linklab ")
