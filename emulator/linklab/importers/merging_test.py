from collections.abc import Iterator
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from linklab.importers.merging import with_uplink
from linklab.traces.trace import TraceSample

Series = list[tuple[int, int]]


def merged(down: list[TraceSample], uplink: Series) -> list[int | None]:
    return [sample.up_bps for sample in with_uplink(down, lambda: iter(uplink))]


def test_each_sample_gets_the_uplinks_mean_meanwhile() -> None:
    down = [TraceSample(100, 1), TraceSample(100, 2), TraceSample(50, 3)]
    assert merged(down, [(150, 800), (50, 0), (50, 7)]) == [800, 400, 7]


def test_a_shorter_uplink_begins_anew_and_a_longer_one_is_cut() -> None:
    down = [TraceSample(100, 1)] * 3
    assert merged(down, [(100, 5), (50, 9)]) == [5, 7, 7]
    assert merged(down, [(100, 5), (200, 6), (900, 9)]) == [5, 6, 6]


def test_an_uplink_of_one_sample_is_not_read_again_and_again() -> None:
    begun = []

    def uplink() -> Iterator[tuple[int, int]]:
        begun.append(1)
        yield 1, 42

    down = [TraceSample(10**9, 1)] * 100
    assert {sample.up_bps for sample in with_uplink(down, uplink)} == {42}
    assert len(begun) == 1


@given(
    st.lists(st.integers(1, 10**10), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 10**10), st.integers(0, 10**10)), min_size=2, max_size=8),
)
def test_no_bit_of_the_uplink_is_lost(lengths_ns: list[int], uplink: Series) -> None:
    """Where the downlink lasts exactly as long."""
    total_ns = sum(length_ns for length_ns, _ in uplink)
    scaled = [TraceSample(length_ns * total_ns, 1) for length_ns in lengths_ns]
    stretched = [(length_ns * sum(lengths_ns), rate) for length_ns, rate in uplink]
    found = list(with_uplink(scaled, lambda: iter(stretched)))
    bits = sum((sample.up_bps or 0) * sample.length_ns for sample in found)
    expected = sum(length_ns * rate for length_ns, rate in stretched)
    assert 2 * abs(bits - expected) <= sum(sample.length_ns for sample in scaled)


def test_samples_are_taken_one_by_one() -> None:
    down = iter([TraceSample(100, 1)] * 10)
    first = list(islice(with_uplink(down, lambda: iter([(100, 1)])), 2))
    assert len(first) == 2
    assert len(list(down)) == 8
