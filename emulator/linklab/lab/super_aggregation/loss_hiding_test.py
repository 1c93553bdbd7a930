"""Tests loss_hiding.py with numbered segments of 100 bytes, after a head of one segment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.lab.super_aggregation.loss_hiding import Pace, Range, Receiver, Spike

EMPTY_S, FULL_S = 0.03, 0.11
"""How long packets take with an empty and with a full queue."""


class Fed:
    """A receiver, and what it has had fetched and wanted told at once."""

    def __init__(self, segments: int = 100) -> None:
        self.receiver = Receiver()
        self.lost: list[Range] = []
        self.urgent: list[int] = []
        self.take(0)
        self.receiver.end = segments * 100
        self.take(1, trip_s=FULL_S)
        self.take(2)

    def take(self, *numbers: int, trip_s: float = EMPTY_S, keeps_up: bool = True) -> None:
        """Segments come."""
        for number in numbers:
            begin = number * 100
            at_once, lost = self.receiver.arrived(begin, begin + 100, trip_s, keeps_up=keeps_up)
            self.lost += lost
            if at_once:
                self.urgent.append(number)


def test_what_is_lost_while_the_queue_is_short_is_acknowledged_and_fetched() -> None:
    fed = Fed()
    fed.take(3, 5, 6)
    assert fed.receiver.acknowledged == 700
    assert not fed.receiver.beyond
    assert fed.lost == []
    fed.take(7)
    assert fed.lost == [(400, 500)]
    assert fed.urgent == []
    fed.take(8, 9)
    assert fed.lost == [(400, 500)]


def test_what_is_lost_while_the_queue_is_full_is_left_to_the_sender() -> None:
    fed = Fed()
    fed.take(3)
    fed.take(5, 6, 8, trip_s=FULL_S)
    assert fed.receiver.acknowledged == 400
    assert fed.receiver.beyond == ((800, 900), (500, 700))
    assert fed.urgent == [5, 6, 8]
    fed.take(4)
    assert fed.receiver.acknowledged == 700
    fed.take(7)
    assert fed.receiver.acknowledged == 900
    assert not fed.receiver.beyond
    assert fed.lost == []
    fed.take(9)
    assert fed.urgent == [5, 6, 8, 4, 7]


def test_a_random_loss_is_hidden_behind_one_that_the_sender_is_to_repair() -> None:
    fed = Fed()
    fed.take(4, trip_s=FULL_S)
    fed.take(6, 7, 8)
    assert fed.receiver.acknowledged == 300
    assert fed.receiver.beyond == ((400, 900),)
    assert fed.lost == [(500, 600)]


def test_what_comes_late_is_not_fetched() -> None:
    fed = Fed()
    fed.take(3, 5, 6, 4, 7, 8, 9)
    assert fed.lost == []
    assert fed.receiver.acknowledged == 1000


def test_of_what_comes_late_in_part_the_rest_is_fetched() -> None:
    fed = Fed()
    fed.take(3, 6)
    fed.receiver.arrived(450, 500, EMPTY_S, keeps_up=True)
    fed.take(7, 8)
    assert fed.lost == [(400, 450), (500, 600)]


def test_who_fetches_and_does_not_keep_up_gets_nothing_more() -> None:
    fed = Fed()
    fed.take(3)
    fed.take(5, 6, 7, 8, keeps_up=False)
    assert fed.receiver.acknowledged == 400
    assert fed.lost == []


def test_before_the_beginning_is_understood_nothing_is_hidden() -> None:
    receiver = Receiver()
    receiver.arrived(100, 200, EMPTY_S, keeps_up=True)
    assert receiver.acknowledged == 0
    assert receiver.beyond == ((100, 200),)


def test_it_is_whole_once_what_is_hidden_has_come_by_whichever_way() -> None:
    fed = Fed(segments=10)
    fed.take(3, 5, 7)
    fed.take(9)
    # Nothing comes behind the end.
    assert fed.lost == [(400, 500), (600, 700), (800, 900)]
    assert fed.receiver.acknowledged == 1000
    fed.receiver.fetched(400, 460)
    fed.receiver.fetched(600, 700)
    fed.receiver.fetched(460, 500)
    assert not fed.receiver.is_whole
    fed.take(8)
    assert fed.receiver.is_whole


def test_the_last_segments_are_the_senders_to_repeat() -> None:
    fed = Fed(segments=5)
    fed.take(3)
    assert fed.receiver.acknowledged == 400
    assert not fed.receiver.is_whole
    fed.take(4)
    assert fed.receiver.is_whole


def test_what_came_before_is_acknowledged_again_at_once() -> None:
    fed = Fed()
    fed.take(3, 2)
    assert fed.urgent == [2]
    assert fed.receiver.acknowledged == 400


@given(st.data())
def test_no_byte_is_forgotten(data: st.DataObject) -> None:
    """Whatever is lost, late or doubled: what comes by neither way is asked of the sender again."""
    count = 12
    receiver = Receiver()
    there = bytearray(count)
    owed: list[Range] = []
    numbers = st.lists(st.integers(0, count - 1), max_size=30)
    orders = [[0], data.draw(numbers), list(range(count)), list(range(count))]
    for order in orders:
        for number in order:
            if (number + 1) * 100 <= receiver.acknowledged and data.draw(st.booleans()):
                continue  # The sender repeats nothing that is acknowledged, but it may be late.
            trip_s = data.draw(st.sampled_from([EMPTY_S, FULL_S]))
            keeps_up = data.draw(st.booleans())
            begin = number * 100
            _, lost = receiver.arrived(begin, begin + 100, trip_s, keeps_up=keeps_up)
            receiver.end = count * 100
            there[number] = 1
            owed += lost
        if data.draw(st.booleans()):
            for begin, end in owed:
                there[begin // 100 : end // 100] = b"\1" * ((end - begin) // 100)
                receiver.fetched(begin, end)
            owed.clear()
    for begin, end in owed:
        there[begin // 100 : end // 100] = b"\1" * ((end - begin) // 100)
        receiver.fetched(begin, end)
    assert receiver.acknowledged == count * 100
    assert receiver.is_whole
    assert all(there)


def test_the_queue_is_full_from_a_half_until_a_third_of_what_it_was() -> None:
    spike = Spike()
    trips = [0.0, 0.12, 0.05, 0.041, 0.039, 0.05, 0.059, 0.061]
    told = [spike.saw(one - 7.0) for one in trips]
    assert told == [False, True, True, True, False, False, False, True]


def test_more_is_asked_while_the_oldest_question_is_no_older_than_two_answers() -> None:
    pace = Pace()
    pace.connected(0.15)
    pace.asked(1.0)
    pace.asked(1.1)
    assert pace.keeps_up(1.29)
    assert not pace.keeps_up(1.31)
    pace.answered(1.32)
    assert pace.keeps_up(1.39)
    assert not pace.keeps_up(1.41)
    pace.answered(1.42)
    assert pace.keeps_up(9.0)


@pytest.mark.parametrize("again_s", [0.1, 0.2])
def test_a_new_connection_owes_nothing_and_the_quickest_answer_counts(again_s: float) -> None:
    pace = Pace()
    pace.connected(0.15)
    pace.asked(1.0)
    pace.connected(again_s)
    assert pace.keeps_up(5.0)
    pace.asked(5.0)
    limit_s = 5.0 + 2 * min(0.15, again_s)
    assert pace.keeps_up(limit_s - 0.001)
    assert not pace.keeps_up(limit_s + 0.001)
