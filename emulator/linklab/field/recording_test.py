import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest

from linklab.field import capacity, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.recording import RecordingError
from linklab.field.simulated_for_test import SimulatedLink
from linklab.scenario import ClientSettings

BOTH = (SimulatedLink(), SimulatedLink("lte", "rmnet0"))


def test_a_download_is_read_back(tmp_path: Path) -> None:
    found = recording.read(simulated.run_dir(tmp_path, BOTH, 5.0, 10_000_000, upper_limit_bytes=7))
    assert [(one.link, one.device) for one in found.histories] == [
        ("wifi", "wlan0"),
        ("lte", "rmnet0"),
    ]
    assert (found.contestant, found.is_complete) == ("alg3", True)
    assert (found.length_s, found.size_bytes) == (5.0, 10_000_000)
    assert found.client.upper_limit_bytes == 7


@pytest.mark.parametrize(("setting", "default"), dataclasses.asdict(ClientSettings()).items())
def test_every_option_that_a_scenario_sets_is_read_back(
    tmp_path: Path, setting: str, default: float
) -> None:
    option: str = setting
    recorded: Any = default * 2
    if setting.endswith("_s"):
        option, recorded = setting.removesuffix("_s") + "_ns", round(default * 2e9)
    found = recording.read(simulated.run_dir(tmp_path, BOTH, **{option: recorded}))
    assert dataclasses.asdict(found.client) == {
        **dataclasses.asdict(ClientSettings()),
        setting: default * 2,
    }


@pytest.mark.parametrize(
    ("algorithm", "links", "rescue", "contestant"),
    [
        ("adaptive", BOTH, True, "adaptive"),
        ("alg3", BOTH, True, ""),
        ("alg1", BOTH, False, "alg1"),
        ("single", BOTH[:1], False, "single-wifi"),
        ("single", BOTH[1:], True, "single-lte"),
        ("tomorrows", BOTH, True, ""),
    ],
)
def test_who_does_the_same_in_the_lab(
    tmp_path: Path, algorithm: str, links: tuple[SimulatedLink, ...], rescue: bool, contestant: str
) -> None:
    directory = simulated.run_dir(tmp_path, links, algorithm=algorithm, rescue=rescue)
    assert recording.read(directory).contestant == contestant


def test_what_an_earlier_call_left_is_not_downloaded_again(tmp_path: Path) -> None:
    size = {"t_ns": 1, "event": "size", "bytes": 10_000_000, "resumed_bytes": 4_000_000}
    directory = simulated.run_dir(tmp_path, [SimulatedLink(more=(size,))], size_bytes=10_000_000)
    assert recording.read(directory).size_bytes == 6_000_000


def _without_summary(directory: Path) -> None:
    (directory / "client.json").unlink()


def _without_events(directory: Path) -> None:
    (directory / "client.jsonl").unlink()


def _cut(directory: Path) -> None:
    (directory / "client.jsonl").write_text('{"t_ns": 1}\n')


def _without_samples(directory: Path) -> None:
    file = directory / "client.jsonl"
    file.write_text("".join(x for x in file.read_text().splitlines(True) if "sample" not in x))


def _at_once(directory: Path) -> None:
    file = directory / "client.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "download_ns": 0}))


NEEDED = "needed: what `multilink get --run-dir` leaves when it ends, client.jsonl and client.json"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_without_summary, f": has no client.json; {NEEDED}"),
        (_without_events, f": has no client.jsonl; {NEEDED}"),
        (_cut, "/client.jsonl:1: "),
        (
            _without_samples,
            ": the download ended before anything was sampled; needed: one of a second",
        ),
        (_at_once, ": the download ended before anything was sampled"),
    ],
)
def test_half_a_run_directory_is_named(tmp_path: Path, spoil: object, said: str) -> None:
    directory = simulated.run_dir(tmp_path, BOTH)
    assert callable(spoil)
    spoil(directory)
    with pytest.raises(RecordingError) as caught:
        recording.read(directory)
    assert str(caught.value).startswith(f"{directory}{said}")


def test_events_that_are_cut_off_are_read_to_there_and_not_complete(tmp_path: Path) -> None:
    directory = simulated.run_dir(tmp_path, BOTH)
    events = directory / recording.EVENTS_FILE
    whole = events.read_bytes()
    rates = []
    for length in (len(whole), len(whole) - 5, len(whole) * 6 // 10):
        events.write_bytes(whole[:length])
        found = recording.read(directory)
        assert found.is_complete == (length == len(whole))
        rates.append(capacity.of_history(found.histories[0], found.length_s).mean_bps())
    assert rates == pytest.approx([rates[0]] * 3, rel=0.01)


@pytest.mark.parametrize("damage", ["twice", "lines twice", "shuffled"])
def test_events_that_would_give_a_wrong_rate_are_refused(tmp_path: Path, damage: str) -> None:
    directory = simulated.run_dir(tmp_path, BOTH)
    events = directory / recording.EVENTS_FILE
    first, *lines = events.read_bytes().splitlines(keepends=True)
    if damage == "twice":
        lines += [first, *lines]
    elif damage == "lines twice":
        lines = [first, *(line for one in lines for line in (one, one))]
    else:
        random.Random(1).shuffle(lines)
    events.write_bytes(b"".join([first, *lines]))
    with pytest.raises(RecordingError, match=r"client\.jsonl:\d+: .*; allowed: "):
        recording.read(directory)
