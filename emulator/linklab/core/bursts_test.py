"""Tests bursts of packets."""

import pytest

from linklab.core.bursts import LEAST_PACKETS, Burst, found, grown, least_packets

MS = 1_000_000


def packets(from_ms: int, count: int = LEAST_PACKETS, every_ms: int = 10) -> list[int]:
    return [(from_ms + n * every_ms) * MS for n in range(count)]


def test_a_pause_ends_a_burst() -> None:
    assert list(found([*packets(0), *packets(2000, 12)])) == [
        Burst(0, 90 * MS, 10),
        Burst(2000 * MS, 2110 * MS, 12),
    ]


def test_a_pause_of_half_a_second_does_not_yet() -> None:
    (one,) = found([*packets(0), *packets(590)])
    assert (one.from_ns, one.to_ns, one.packets) == (0, 680 * MS, 20)
    assert len(list(found([*packets(0), *packets(591)]))) == 2


def test_a_few_packets_are_none() -> None:
    assert list(found(packets(0, LEAST_PACKETS - 1))) == []
    few = packets(5000, LEAST_PACKETS - 1)
    assert [one.packets for one in found([*packets(0), *few, *packets(9000)])] == [10, 10]


def test_a_film_s_bursts_have_more_packets() -> None:
    assert (least_packets("player"), least_packets("page")) == (1000, 10)
    film = [*packets(0, 999, 1), *packets(5000, 1000, 1)]
    assert [one.packets for one in found(film, least_packets("player"))] == [1000]
    assert [one.packets for one in found(film)] == [999, 1000]


def test_packets_of_several_links_are_put_in_order() -> None:
    wifi, lte = packets(0, 5, 100), packets(50, 5, 100)
    assert list(found([*wifi, *lte])) == [Burst(0, 450 * MS, 10)]
    assert list(found([])) == []


def test_what_a_counter_grew_in_the_steps_of_bursts() -> None:
    samples = [(0.0, 0.0), (0.1, 1.0), (0.2, 3.0), (0.3, 7.0), (0.5, 15.0), (0.6, 31.0)]
    assert grown(samples, [(0.12, 0.13)]) == pytest.approx((2, 0.1))
    assert grown(samples, [(0.15, 0.25)]) == pytest.approx((6, 0.2))
    assert grown(samples, [(0.01, 0.02), (0.05, 0.06), (0.35, 0.36)]) == pytest.approx((9, 0.3))
    assert grown(samples, [(0.1, 0.2)]) == pytest.approx((2, 0.1)), "the neighbours are not touched"
    assert grown(samples, [(-1.0, 9.0)]) == pytest.approx((31, 0.6))
    assert grown(samples, []) == grown([], [(0.0, 1.0)]) == (0, 0)
