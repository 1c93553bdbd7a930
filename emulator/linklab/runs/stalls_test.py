import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.records import QueueRecord
from linklab.core.records_test import sampled
from linklab.runs.stalls import stalled_s


def both(t_s: float, wifi: int, lte: int) -> list[QueueRecord]:
    return [
        sampled(t_s, "wifi", wifi),
        sampled(t_s, "wifi", round(t_s * 1e6), "up"),
        sampled(t_s, "lte", lte),
    ]


def test_one_link_that_stands_still_is_no_stall() -> None:
    records = [each for n in range(1, 9) for each in both(n / 2, 9000, n * 2000)]
    assert stalled_s(records, 9.0) == 0


def test_both_links_that_stand_still_are() -> None:
    records = [
        *both(0.5, 9000, 0),
        *both(1.0, 9000, 500),
        *both(1.5, 9060, 500),
        *both(2.0, 9060, 9500),
    ]
    assert stalled_s(records, 2.2) == pytest.approx(1.0)


def test_the_wait_for_the_first_byte_is_none() -> None:
    assert stalled_s([*both(0.5, 60, 60), *both(1.0, 60, 60), *both(1.5, 9000, 60)], 2.0) == 0
    assert stalled_s([], 1.0) == 0


def test_what_comes_after_the_download_is_none() -> None:
    records = [*both(0.5, 9000, 0), *both(1.0, 9000, 0), *both(1.5, 9000, 0)]
    assert stalled_s(records, 9.0) == pytest.approx(1.0)
    assert stalled_s(records, 1.0) == pytest.approx(0.5)  # The sample of the last moment counts.


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), max_size=40))
def test_a_stall_is_no_longer_than_the_download(steps: list[tuple[int, int]]) -> None:
    wifi = lte = 0
    records = []
    for number, (a, b) in enumerate(steps):
        wifi, lte = wifi + a, lte + b
        records += both(number / 2, wifi, lte)
    still_s = stalled_s(records, 1e6)
    assert 0 <= still_s <= max(0, len(steps) - 1) / 2
    if all(a + b >= 1514 for a, b in steps):
        assert still_s == 0
