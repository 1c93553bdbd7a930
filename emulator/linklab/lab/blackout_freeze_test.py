from __future__ import annotations

from collections import deque

from linklab.lab import blackout_freeze
from linklab.lab.blackout_freeze import STEPS, Frozen
from linklab.lab.tcp_segment import ACK, Segment


def acknowledgement(number: int) -> Segment:
    return Segment(1, 443, 1, number, ACK, 100, (7, 8))


def test_what_was_sent_after_the_link_went_is_what_is_left_to_tell() -> None:
    sent = deque((0.01 * n, acknowledgement(10_000 * n)) for n in range(100))
    found = blackout_freeze.frozen(sent, 0.905)
    assert found.last.acknowledged == 990_000
    assert found.kept_bytes == 80_000  # From 910000, the first that was lost.
    assert found.step_bytes == 80_000 // STEPS


def test_one_step_is_a_whole_segment_at_least() -> None:
    sent = deque([(1.0, acknowledgement(1000)), (1.1, acknowledgement(2000))])
    assert blackout_freeze.frozen(sent, 1.0).kept_bytes == 0
    assert blackout_freeze.frozen(sent, 0.9).kept_bytes == 1000
    assert blackout_freeze.frozen(sent, 0.9).step_bytes == 1448
    assert blackout_freeze.frozen(sent, 2.0).kept_bytes == 0


def test_numbers_that_began_anew() -> None:
    sent = deque([(1.0, acknowledgement(2**32 - 5000)), (1.1, acknowledgement(5000))])
    assert blackout_freeze.frozen(sent, 0.9).kept_bytes == 10_000


def test_all_but_the_last_part_is_told_with_a_closed_window() -> None:
    last = acknowledgement(10_000)
    frozen = Frozen(last, 3000, 1448)
    assert frozen.told() == Segment(1, 443, 1, 7000, ACK, 0, (7, 8))
    frozen.kept_bytes = 1448
    assert frozen.told() == Segment(1, 443, 1, 8552, ACK, 100, (7, 8))
