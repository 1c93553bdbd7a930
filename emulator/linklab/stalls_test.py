import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import stalls
from linklab.records import ClientRecord, QueueRecord


def sample(t_s: float, link: str, received: int) -> ClientRecord:
    return ClientRecord(round(t_s * 1e9), "sample", link, received_bytes=received)


def queue(t_s: float, link: str, sent: int, direction: str = "down") -> QueueRecord:
    return QueueRecord(t_s, link, direction, sent, 0, 0, 0)


DONE = ClientRecord(1_000_000_000, "done")


def test_one_link_that_stands_still_is_no_stall() -> None:
    records = [
        record
        for n in range(1, 10)
        for record in (sample(n / 10, "wifi", min(n, 3) * 1000), sample(n / 10, "lte", n * 10))
    ]
    assert stalls.of_client([*records, DONE]) == 0


def test_both_links_that_stand_still_are() -> None:
    records = [
        record
        for n in range(1, 10)
        for record in (sample(n / 10, "wifi", min(n, 3) * 1000), sample(n / 10, "lte", min(n, 5)))
    ]
    assert stalls.of_client([*records, DONE]) == pytest.approx(0.4)


def test_waiting_for_the_first_byte_is_none() -> None:
    assert stalls.of_client([sample(0.1, "wifi", 0), sample(0.2, "wifi", 0), DONE]) == 0
    assert stalls.of_client([DONE]) == stalls.of_client([]) == 0


def test_links_without_a_connection_are_not_sampled_and_bring_nothing() -> None:
    """wifi-gone's fault on both links: no samples between 0.2 and 4.7 s."""
    records = [sample(0.1, "wifi", 10), sample(0.2, "wifi", 20), sample(4.7, "wifi", 40)]
    assert stalls.of_client(records) == pytest.approx(4.4)


def test_other_programs_are_judged_by_the_queues() -> None:
    records = [
        queue(0.5, "wifi", 10_000), queue(0.5, "wifi", 9_999, "up"), queue(0.5, "lte", 0),
        queue(1.0, "wifi", 11_000), queue(1.0, "wifi", 99_999, "up"), queue(1.0, "lte", 500),
        queue(1.5, "wifi", 11_060), queue(1.5, "lte", 9_500),
        queue(2.0, "wifi", 11_060), queue(2.0, "lte", 9_500),
        queue(2.5, "wifi", 11_060), queue(2.5, "lte", 9_500),
    ]  # fmt: skip
    assert stalls.of_queues(records, 2.2) == pytest.approx(1.0 - 0.5 + 0.5)
    assert stalls.of_queues(records, 9.9) == pytest.approx(1.5)
    assert stalls.of_queues([], 1.0) == 0


@given(st.lists(st.tuples(st.sampled_from(("wifi", "lte")), st.integers(0, 5)), max_size=40))
def test_a_stall_is_no_longer_than_the_download(steps: list[tuple[str, int]]) -> None:
    totals = {"wifi": 0, "lte": 0}
    records = []
    for number, (link, more) in enumerate(steps):
        totals[link] += more
        records.append(sample(number / 10, link, totals[link]))
    still_s = stalls.of_client(records)
    assert 0 <= still_s <= max(0, len(steps) - 1) / 10 + 1e-9
    if all(more for _, more in steps):
        assert still_s == 0
