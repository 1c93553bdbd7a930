"""Tests recordings whose few stamps are far apart, such as of a clock that was set meanwhile."""

import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpkt
import pytest

from linklab.core.link_kinds import KINDS
from linklab.field import capture, making, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.capacity import CapacityStep
from linklab.field.capture_test import download
from linklab.field.recording import Recording, RecordingError
from linklab.field.simulated_for_test import SimulatedLink
from linklab.importers import captures_for_test

DAY_S = 86_400.0
MEMORY_BYTES = 2 << 30
DRAWN = 24


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Bounds what this process takes in addition, so a reader that takes all takes nobody else's."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + MEMORY_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def gaps_s() -> list[float]:
    """Returns lengths of gaps from a second to 100 years, without those of hours, which take long."""
    draw = random.Random(48)
    drawn = [10 ** draw.uniform(0, 9.5) for _ in range(DRAWN)]
    return sorted(one for one in drawn if not 1e3 < one < DAY_S)


def torn(file: Path, gap_s: float, share: float) -> Path:
    """Returns a capture whose last packets come later."""
    with file.open("rb") as opened:
        packets = [(float(t_s), content) for t_s, content in dpkt.pcap.Reader(opened)]
    first = 3 + round(share * (len(packets) - 4))
    late = [(t_s + gap_s * (number >= first), one) for number, (t_s, one) in enumerate(packets)]
    return captures_for_test.pcap(file.with_name("torn.pcap"), late)


def require_short(found: Recording, gap_s: float) -> None:
    """What is read is no longer than the gap and the download, and every step has been seen."""
    assert gap_s < DAY_S
    assert found.length_s <= gap_s + 11
    assert all(len(one.samples) <= 10 * (gap_s + 11) + 1 for one in found.histories)


@pytest.mark.usefixtures("little_memory")
def test_captures_with_gaps_of_any_length(tmp_path: Path) -> None:
    draw = random.Random(1)
    whole = download(tmp_path / "wifi.pcap", length_s=1.0)
    refused = 0
    for gap_s in gaps_s():
        file = torn(whole, min(gap_s, 2e9), draw.random())
        try:
            (found,) = capture.read([file])
        except RecordingError as error:
            assert gap_s > DAY_S - 11, error
            assert str(error).startswith(f"{file}: lasts ")
            assert "allowed: up to 86400 s" in str(error)
            refused += 1
        else:
            require_short(found, gap_s)
    assert 5 < refused < DRAWN


@pytest.mark.usefixtures("little_memory")
def test_captures_of_two_links_of_which_one_is_years_long(tmp_path: Path) -> None:
    whole = download(tmp_path / "wifi.pcap", length_s=1.0)
    with pytest.raises(RecordingError, match=r"lasts \d+ s by its stamps; allowed: up to 86400 s"):
        capture.read([torn(whole, 3e7, 0.5), whole])


@pytest.mark.usefixtures("little_memory")
def test_recordings_with_lengths_of_any_size(tmp_path: Path) -> None:
    for number, length_s in enumerate(one for one in gaps_s() if one < 604_000):
        directory = simulated.run_dir(tmp_path / str(number), [SimulatedLink()], 2.0)
        summary = directory / recording.SUMMARY_FILE
        download_ns = f'"download_ns": {round(length_s * 1e9)}'
        summary.write_text(summary.read_text().replace('"download_ns": 2000000000', download_ns))
        assert download_ns in summary.read_text()
        if length_s > DAY_S:
            with pytest.raises(RecordingError, match="allowed: up to 86400 s"):
                recording.read(directory)
        else:
            making.scenario("drive", [recording.read(directory)], KINDS)


class Counted(list[CapacityStep]):
    """Steps that count how often one is looked at."""

    looks = 0

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        self.looks += len(found) if isinstance(which, slice) else 1
        return found

    def __iter__(self) -> Iterator[CapacityStep]:
        self.looks += len(self)
        return super().__iter__()


def test_the_mean_rate_looks_at_the_steps_of_its_time_alone() -> None:
    """A recording of an hour has 36,000 steps. Looking at all for each took minutes."""
    draw = random.Random(2)
    at_s, steps = 0.0, Counted()
    for _ in range(5000):
        end_s = at_s + draw.choice([0.1, 0.1, draw.uniform(0.001, 2)])
        steps.append(CapacityStep(at_s, end_s, draw.uniform(0, 1e8), True))
        at_s = end_s if draw.random() < 0.9 else end_s + draw.random()
    for _ in range(200):
        begin_s = draw.choice([draw.uniform(-1, at_s), steps[draw.randrange(5000)].start_s])
        end_s = begin_s + draw.choice([0.001, 0.1, draw.uniform(0.01, 5)])
        wanted = 0.0
        for one in list(steps):
            together_s = min(end_s, one.end_s) - max(begin_s, one.start_s)
            wanted += one.rate_bps * max(0.0, together_s)
        steps.looks = 0
        assert making._rate_bps(steps, begin_s, end_s) == wanted / (end_s - begin_s)
        assert steps.looks < 500
