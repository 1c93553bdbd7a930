from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.importers.bins import Bins
from linklab.traces.trace import NS_PER_S, TraceError

times = st.lists(st.integers(0, NS_PER_S), min_size=1, max_size=50)


def fail(reason: str) -> NoReturn:
    raise TraceError(reason)


@given(times, st.integers(1, NS_PER_S))
def test_bins_last_as_long_as_the_times(found: list[int], length_ns: int) -> None:
    """A time may be up to a second earlier than the latest one."""
    bins = Bins(length_ns, "packet", "in order", fail)
    ended = [lengths for t_ns in found for lengths in bins.ended(t_ns)]
    assert all(one % length_ns == 0 for one in ended)
    assert sum(ended) + bins.rest_ns == bins.total_ns == max(found) - found[0]
    assert bins.rest_ns < length_ns


def test_bins_without_anything_are_joined() -> None:
    bins = Bins(10, "packet", "in order", fail)
    assert [bins.ended(t_ns) for t_ns in (5, 14, 15, 47)] == [(), (), (10,), (10, 20)]
    assert (bins.rest_ns, bins.total_ns) == (2, 42)


@pytest.mark.parametrize(
    ("t_ns", "message"),
    [
        (0, "a packet is 2 s earlier than the one before; allowed: in order"),
        (2_000_000 * NS_PER_S, "is too long; allowed: up to 1000000 s"),
    ],
)
def test_times_that_make_no_trace_are_refused(t_ns: int, message: str) -> None:
    bins = Bins(10, "packet", "in order", fail)
    bins.ended(2 * NS_PER_S)
    with pytest.raises(TraceError, match=f"^{message}$"):
        bins.ended(t_ns)
