"""Tests marks.py: the marks at a time, with links and words."""

import pytest

from linklab.core.records import EventRecord
from linklab.metrics.run import RunMetrics
from linklab.metrics.run_test import run, state, tell

__all__ = ["run"]


def shown(run: RunMetrics, name: str) -> list[tuple[str, str]]:
    return [
        (one.labels["link"], one.labels["what"])
        for one in run.samples()
        if one.name == name and one.value == 1
    ]


def out(run: RunMetrics) -> list[tuple[str, str]]:
    return shown(run, "linklab_link_out")


def by_hand(run: RunMetrics) -> list[tuple[str, str]]:
    return shown(run, "linklab_link_by_hand")


def test_an_outage_is_there_while_it_lasts_and_says_whether_the_client_knows(
    run: RunMetrics,
) -> None:
    tell(run, state(0.0), state(2.0, up=False))
    assert out(run) == [("wifi", "down")]
    tell(run, state(5.0), state(6.0, blackout=True))
    assert out(run) == [("wifi", "out")]
    tell(run, state(8.0))
    assert out(run) == []


def test_what_is_over_before_anybody_looked_stays_for_a_second(run: RunMetrics) -> None:
    tell(run, state(0.0), state(2.1, blackout=True), state(2.15))
    assert out(run) == [("wifi", "out")]
    run.advance(3.0)
    assert out(run) == [("wifi", "out")]
    run.advance(3.2)
    assert out(run) == []


def test_somebodys_outage_says_so_in_the_words_of_the_command(run: RunMetrics) -> None:
    tell(
        run,
        state(0.0),
        EventRecord(2.0, "wifi", "live", "carrier down for 3 s"),
        state(2.0, up=False),
    )
    assert out(run) == [("wifi", "carrier down for 3 s, by hand")]
    assert by_hand(run) == [("wifi", "carrier down for 3 s")]
    tell(run, state(5.0), EventRecord(5.0, "wifi", "live-end", "carrier down for 3 s"))
    assert (out(run), by_hand(run)) == ([], [])
    tell(run, state(7.0, up=False))
    assert out(run) == [("wifi", "down")]


@pytest.mark.parametrize(
    ("events", "left"),
    [
        (["down 10 Mbit/s"], ["down 10 Mbit/s"]),
        (["down 10 Mbit/s", "down 20 Mbit/s"], ["down 20 Mbit/s"]),
        (["down 10 Mbit/s, loss 1 %"], ["down 10 Mbit/s", "loss 1 %"]),
        (["carrier down", "carrier up"], []),
        (["handover ap2", "rtt 80 ms"], ["rtt 80 ms"]),
    ],
)
def test_changes_stay_until_the_same_is_changed_again(
    run: RunMetrics, events: list[str], left: list[str]
) -> None:
    for t_s, words in enumerate(events):
        tell(run, EventRecord(float(t_s), "lte", "live", words))
    run.advance(60.0)
    assert by_hand(run) == [("lte", words) for words in left]


def test_the_end_of_a_change_that_another_has_replaced_ends_nothing(run: RunMetrics) -> None:
    for t_s, kind, words in (
        (1.0, "live", "down 10 Mbit/s for 5 s"),
        (2.0, "live", "down 20 Mbit/s"),
        (6.0, "live-end", "down 10 Mbit/s for 5 s"),
    ):
        tell(run, EventRecord(t_s, "lte", kind, words))
    run.advance(60.0)
    assert by_hand(run) == [("lte", "down 20 Mbit/s")]
