"""Tests loads and memory against samples made by hand."""

import pytest

from linklab.core.records import ProcessRecord
from linklab.runs import process_figures


def sampled(loads: list[float], *, late_s: float = 0.0) -> list[ProcessRecord]:
    """Ten samples a second of these loads, each for a second; memory grows by 1 MB a second."""
    made, cpu_s = [], 5.0
    for n in range(10 * len(loads) + 1):
        t_s = 0.2 + n / 10 + (late_s if n % 2 else 0.0)
        rss_bytes = 10_000_000 + 100_000 * n
        made.append(ProcessRecord(t_s=t_s, process="client", cpu_s=cpu_s, rss_bytes=rss_bytes))
        if n < 10 * len(loads):
            cpu_s += loads[n // 10] / 10
    return made


def test_figures_by_hand() -> None:
    found = process_figures.of_records(sampled([0.2, 0.4, 0.6, 0.8]))
    assert set(found) == {"client"}
    one, ten = found["client"]["1 Hz"], found["client"]["10 Hz"]
    assert (one.samples, ten.samples) == (5, 41)
    for figures in (one, ten):
        assert figures.load_median == pytest.approx(0.5)
        assert figures.load_max == pytest.approx(0.8)
        assert figures.cpu_s == pytest.approx(2.0)
        assert figures.memory_bytes == pytest.approx(12_000_000)
        assert figures.memory_integral_byte_s == pytest.approx(4 * 12_000_000)
    assert one.load_p05 == pytest.approx(0.23)
    assert one.load_p90 == pytest.approx(0.74)
    assert one.load_variation == pytest.approx(0.5164, abs=1e-4)
    assert ten.load_p90 == pytest.approx(0.8)


def test_processes_over_time() -> None:
    found = process_figures.over_time(sampled([0.2, 0.4]), 1.0)["client"]
    assert found.loads == [pytest.approx((0.2, 0.2)), pytest.approx((1.2, 0.4))]
    assert found.memory_bytes == [
        pytest.approx((t_s, size)) for t_s, size in ((0.2, 10e6), (1.2, 11e6), (2.2, 12e6))
    ]


def test_looks_that_come_late_are_all_looked_at() -> None:
    found = process_figures.of_records(sampled([0.5, 0.5], late_s=0.03))
    assert found["client"]["10 Hz"].samples == 21
    assert found["client"]["1 Hz"].samples == 3


def test_the_end_counts_though_it_comes_early() -> None:
    samples = sampled([0.5, 0.5, 0.5])[:27]  # 2.6 s
    assert process_figures.of_records(samples)["client"]["1 Hz"].samples == 4
    assert process_figures.of_records(samples[:23])["client"]["1 Hz"].samples == 3


def test_processor_time_is_all_that_was_seen() -> None:
    """A burst in the last half second is no sample of one in a second, but was spent."""
    samples = sampled([0.5, 0.5, 1.0])[:24]
    found = process_figures.of_records(samples)["client"]
    assert found["1 Hz"].cpu_s == found["10 Hz"].cpu_s == pytest.approx(1.3)
    assert found["1 Hz"].load_max == pytest.approx(0.5)


def test_memory_of_a_process_that_has_ended_is_not_zero() -> None:
    samples = sampled([0.5, 0.5])
    last = samples[-1]
    ended = ProcessRecord(t_s=last.t_s, process="client", cpu_s=last.cpu_s, rss_bytes=None)
    figures = process_figures.of_records([*samples[:-1], ended])["client"]["10 Hz"]
    assert figures.memory_bytes == pytest.approx(10_950_000)
    assert figures.cpu_s == pytest.approx(1.0)


def test_idle_has_no_variation_and_too_short_no_figures() -> None:
    idle = process_figures.of_records(sampled([0.0, 0.0, 0.0]))["client"]["1 Hz"]
    assert (idle.load_median, idle.load_variation) == (0.0, None)
    short = process_figures.of_records(sampled([0.5]))
    assert set(short["client"]) == {"10 Hz"}
    assert process_figures.of_records(sampled([0.5])[:2]) == {}


def test_the_load_of_bursts_is_that_of_the_samples_that_they_touch() -> None:
    samples = sampled([0.2, 1.0, 0.4])
    first = samples[0].t_s
    assert process_figures.load_in(
        samples, "client", [(first + 1.2, first + 1.3)]
    ) == pytest.approx(1.0, abs=0.01)
    both = [(first + 0.5, first + 0.52), (first + 1.5, first + 1.52)]
    assert process_figures.load_in(samples, "client", both) == pytest.approx(0.6, abs=0.01)
    assert process_figures.load_in(samples, "client", []) is None
    assert process_figures.load_in(samples, "server", both) is None
