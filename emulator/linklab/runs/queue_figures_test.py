from typing import Any

import pytest

from linklab.core.records import QueueRecord, SojournRecord
from linklab.core.records_test import sampled
from linklab.runs import queue_figures
from linklab.runs.queue_figures import NAMES


def sample(t_s: float, dropped: int, **own: int) -> QueueRecord:
    more: dict[str, Any] = {"discipline": own} if own else {}
    return sampled(t_s, "lte", 0, dropped_packets=dropped, lost_packets=2, **more)


def waits(buckets: list[int], *, scalable: bool) -> SojournRecord:
    return SojournRecord(t_s=1.0, link="lte", direction="down", scalable=scalable, buckets=buckets)


def test_all_drops_of_a_queue_without_an_algorithm_found_it_full() -> None:
    found = queue_figures.of_records([sample(0.5, 3), sample(1.0, 7)], [])["lte"]["down"]
    assert (found.dropped_packets, found.early_dropped_packets, found.full_dropped_packets) == (
        7,
        0,
        7,
    )
    assert (found.lost_packets, found.marked_packets, found.sojourn) == (2, 0, None)
    assert found.words == "nothing waited, 7 dropped"


def test_marks_and_drops_by_reason_are_those_of_the_discipline() -> None:
    own = {"marked_packets": 5, "early_dropped_packets": 4, "full_dropped_packets": 3}
    found = queue_figures.of_records([sample(1.0, 7, **own)], [])["lte"]["down"]
    assert (found.marked_packets, found.early_dropped_packets, found.full_dropped_packets) == (
        5,
        4,
        3,
    )


def test_dropped_acknowledgements_are_drops_of_the_algorithm() -> None:
    own = {"early_dropped_packets": 1, "ack_dropped_packets": 4}
    found = queue_figures.of_records([sample(1.0, 7, **own)], [])["lte"]["down"]
    assert (found.early_dropped_packets, found.full_dropped_packets) == (5, 2)


def test_sojourn_times_are_of_all_packets_and_of_scalable_ones() -> None:
    both = [waits([0] * 16 + [100], scalable=False), waits([100], scalable=True)]
    found = queue_figures.of_records([sample(1.0, 0)], both)["lte"]["down"]
    assert found.sojourn is not None
    assert found.scalable is not None
    assert found.sojourn.p50_s == pytest.approx(1.024e-6)
    assert found.sojourn.p99_s == pytest.approx(16.98 * 1.024e-6)
    assert found.scalable.p99_s == pytest.approx(0.99 * 1.024e-6)
    assert set(found.flat()) == set(NAMES)


def test_a_queue_that_no_packet_entered_has_no_times() -> None:
    found = queue_figures.of_records([sample(1.0, 0)], [waits([], scalable=False)])
    assert found["lte"]["down"].sojourn is None
    assert set(found["lte"]["down"].flat()) < set(NAMES)
