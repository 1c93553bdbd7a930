import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.traces.statistics import BIN_S, Counting, Statistics
from linklab.traces.trace import TraceSample

SECOND = 10**9


def of_downlink(samples: Iterable[TraceSample], bin_s: float = BIN_S) -> Statistics:
    counting = Counting(bin_s)
    for sample in samples:
        counting.add(sample.length_ns, sample.down_bps or 0)
    return counting.result()


def of(*rates: int, length_ns: int = SECOND, bin_s: float = 1.0) -> Statistics:
    return of_downlink((TraceSample(length_ns, rate) for rate in rates), bin_s)


def test_mean_variation_and_duration() -> None:
    found = of(1_000_000, 3_000_000)
    assert (found.duration_s, found.mean_bps, found.cv) == (2.0, 2_000_000, 0.5)


def test_the_mean_is_over_time() -> None:
    found = of_downlink([TraceSample(3 * SECOND, 1000), TraceSample(SECOND, 5000)])
    assert found.mean_bps == 2000


def test_variation_is_that_of_seconds() -> None:
    assert of(0, 2_000_000, 0, 2_000_000, length_ns=SECOND // 2).cv == 0
    assert of(0, 2_000_000, 0, 2_000_000, length_ns=SECOND // 2, bin_s=0.5).cv == 1


def test_a_sample_over_several_bins_counts_in_each() -> None:
    trace = [TraceSample(3 * SECOND // 2, 2_000_000), TraceSample(SECOND // 2, 6_000_000)]
    assert of_downlink(trace).cv == pytest.approx(1 / 3)  # 2 and 4 Mbit/s


def test_an_alternating_series_is_anticorrelated_after_1_s_and_correlated_after_10() -> None:
    found = of(*([1_000_000, 3_000_000] * 50))
    assert found.autocorrelation_1s == pytest.approx(-0.99)
    assert found.autocorrelation_10s == pytest.approx(0.9)


def test_what_is_too_short_or_constant_has_no_correlation() -> None:
    short = of(1_000_000, 2_000_000)
    assert (short.autocorrelation_1s, short.autocorrelation_10s) == (None, None)
    constant = of(*[333_333_333] * 30)
    assert (constant.cv, constant.autocorrelation_1s) == (0, None)
    assert of(1000, length_ns=SECOND // 2).cv is None
    assert of(0, 0).cv is None


@pytest.mark.parametrize(
    ("dark_ns", "gaps", "longest_s"),
    [([500_000_000], 0, 0.5), ([500_000_001], 1, 0.500000001), ([300_000_000] * 2, 0, 0.3)],
)
def test_gaps_are_longer_than_half_a_second(
    dark_ns: list[int], gaps: int, longest_s: float
) -> None:
    trace = [TraceSample(SECOND, 5000)]
    for length_ns in dark_ns:
        trace += [TraceSample(length_ns, 999), TraceSample(SECOND, 1000)]
    found = of_downlink(trace)
    assert (found.gaps, found.longest_gap_s) == (gaps, longest_s)


def test_a_gap_of_many_samples_is_one_also_at_the_end() -> None:
    found = of(5000, *[0] * 20, 5000, *[0] * 6, length_ns=SECOND // 10)
    assert (found.gaps, found.longest_gap_s) == (2, 2.0)


def test_nothing_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="without samples"):
        Counting().result()


series = st.lists(
    st.builds(TraceSample, st.integers(10**6, 5 * SECOND), st.integers(0, 10**9)), min_size=1
)


@given(series, st.data())
def test_cutting_samples_changes_nothing(trace: list[TraceSample], data: st.DataObject) -> None:
    cut = []
    for sample in trace:
        at = data.draw(st.integers(1, sample.length_ns - 1))
        cut += [
            TraceSample(at, sample.down_bps),
            TraceSample(sample.length_ns - at, sample.down_bps),
        ]
    one, other = of_downlink(trace), of_downlink(cut)
    assert (one.duration_s, one.mean_bps, one.gaps, one.longest_gap_s) == (
        other.duration_s,
        other.mean_bps,
        other.gaps,
        other.longest_gap_s,
    )
    assert one.cv == other.cv


@given(series, st.integers(2, 50))
def test_scaling_changes_the_mean_alone(trace: list[TraceSample], factor: int) -> None:
    one = of_downlink(trace)
    other = of_downlink(TraceSample(s.length_ns, (s.down_bps or 0) * factor) for s in trace)
    assert other.mean_bps == pytest.approx(one.mean_bps * factor)
    if one.cv is not None and other.cv is not None:
        assert math.isclose(one.cv, other.cv, rel_tol=1e-6, abs_tol=1e-9)
