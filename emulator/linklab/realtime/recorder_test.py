"""Tests of recorder.py."""

from pathlib import Path

import pytest

from linklab import scenario
from linklab.core.records import FILES, EventRecord, line
from linklab.lab.player import control
from linklab.lab.player.control import Command
from linklab.realtime.recorder import Recorder, RecordFileError
from linklab.scenario import Scenario


def change(run_dir: Path, number: int) -> None:
    run_dir.mkdir(exist_ok=True)
    control.send(run_dir, Command(link="wifi", loss_ratio=number / 100))
    with (run_dir / FILES[EventRecord]).open("ab") as file:
        file.write(line(EventRecord(float(number), "wifi", "live", "", number)))


def test_a_file_grows_with_its_run_and_each_run_has_its_own(
    small: Scenario, tmp_path: Path
) -> None:
    (tmp_path / "mine-2.yaml").write_text("someone else's")
    recorder = Recorder(small, tmp_path / "mine.yaml")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    recorder.update(first, "alg3", 1)
    assert not recorder.files
    for number in (1, 2):
        change(first, number)
        recorder.update(first, "alg3", 1)
        made = scenario.load(tmp_path / "mine.yaml")
        assert [one.at_s for one in made.events] == list(range(1, number + 1))
    assert made.title == "small as changed by hand, while alg3 ran with seed 1"
    change(second, 1)
    recorder.update(second, "alg1", 2)
    assert recorder.files == [tmp_path / "mine.yaml", tmp_path / "mine-3.yaml"]
    assert (tmp_path / "mine-2.yaml").read_text() == "someone else's"
    before = (tmp_path / "mine.yaml").stat().st_mtime_ns
    recorder.update(first, "alg3", 1)
    assert (tmp_path / "mine.yaml").stat().st_mtime_ns == before


def test_a_file_that_cannot_be_is_said_at_once(small: Scenario, tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("")
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    for name, said in (
        ("there.yaml", "is there already"),
        ("dangling.yaml", "is there already"),
        ("Mine.yaml", "is no name of a scenario"),
        ("mine.json", "is no name of a scenario"),
        ("no/mine.yaml", "is no directory"),
    ):
        with pytest.raises(RecordFileError, match=said):
            Recorder(small, tmp_path / name)


def test_a_full_name_keeps_room_for_its_number(small: Scenario, tmp_path: Path) -> None:
    recorder = Recorder(small, tmp_path / f"{'a' * 64}.yaml")
    for name in ("first", "second"):
        change(tmp_path / name, 1)
        recorder.update(tmp_path / name, "alg3", 1)
    assert recorder.files[1].name == f"{'a' * 62}-2.yaml"
    assert scenario.load(recorder.files[1]).events
