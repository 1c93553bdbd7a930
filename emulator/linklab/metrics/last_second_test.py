"""Tests last_second.py."""

import pytest

from linklab.metrics.last_second import LastSecond


def test_nothing_read_is_nothing() -> None:
    assert LastSecond(2).per_second() == (0.0, 0.0)


def test_what_grew_is_of_the_last_whole_second_by_the_times_of_reading() -> None:
    sums = LastSecond(1)
    sums.read(0.5, 50.0)
    assert sums.per_second() == (100.0,)
    for t_s, total in ((1.000002, 100.0), (1.500003, 100.0), (2.000001, 400.0)):
        sums.read(t_s, total)
    assert sums.per_second()[0] == pytest.approx(300.0, rel=1e-5)
    sums.read(2.5, 400.0)
    assert sums.per_second()[0] == pytest.approx(300.0, rel=1e-5)
    sums.read(3.0, 400.0)
    assert sums.per_second() == (0.0,)


def test_a_last_sample_at_an_odd_time_takes_a_second_at_least() -> None:
    sums = LastSecond(1)
    for t_s in (0.5, 1.0, 1.5, 1.7):
        sums.read(t_s, 10 * t_s)
    assert sums.per_second()[0] == pytest.approx(10.0)
