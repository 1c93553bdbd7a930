import pytest

from linklab.core.link_state import Direction
from linklab.core.records import QueueRecord
from linklab.core.records_test import sampled
from linklab.runs import link_rates


def samples(link: str, megabytes: list[float], direction: Direction = "down") -> list[QueueRecord]:
    """Counters every half second."""
    return [
        sampled((index + 1) / 2, link, round(total * 1e6), direction)
        for index, total in enumerate(megabytes)
    ]


def test_the_median_of_the_seconds_after_the_first() -> None:
    # Seconds of 1, 8, 10, 4 MB; the half second at the end is none.
    sent = samples("wifi", [0.5, 1, 5, 9, 14, 19, 21, 23, 60])
    assert link_rates.median_rates_bps(sent, 0.0, {"wifi": 4.6}, "down") == {
        "wifi": pytest.approx(64e6)
    }


def test_the_seconds_before_the_client_starts_are_none() -> None:
    sent = samples("wifi", [0, 0, 0, 0, 0, 0, 1, 1, 2, 2])
    assert link_rates.median_rates_bps(sent, 3.0, {"wifi": 5.0}, "down") == {
        "wifi": pytest.approx(8e6)
    }


def test_nothing_counts_after_a_link_has_ended() -> None:
    sent = [*samples("lte", [1, 2, 3, 4, 4, 4, 4, 4]), *samples("lte", [9, 9, 9, 9], "up")]
    assert link_rates.median_rates_bps(sent, 0.0, {"lte": 2.0}, "down") == {
        "lte": pytest.approx(16e6)
    }
    assert link_rates.median_rates_bps(sent, 0.0, {"lte": 1.0}, "up") == {
        "lte": pytest.approx(72e6)
    }


def test_short_use_and_links_that_were_not_used() -> None:
    sent = [*samples("wifi", [1, 2]), *samples("lte", [1, 2, 3, 4])]
    assert link_rates.median_rates_bps(sent, 0.0, {"wifi": 0.9}, "down") == {}
    assert link_rates.median_rates_bps(sent, 0.0, {"wifi": 1.0}, "down") == {
        "wifi": pytest.approx(16e6)
    }
