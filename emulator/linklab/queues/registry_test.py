import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.netlink_messages import attributes
from linklab.queues import cake, codel, dualpi2, fq_codel, fq_pie, pie, red, registry
from linklab.queues.discipline import AnyDiscipline, Leaf


@pytest.mark.parametrize("one", registry.DISCIPLINES, ids=lambda one: one.name)
def test_every_discipline_works_without_a_key(one: AnyDiscipline) -> None:
    settings = one.table.settings()
    assert registry.of_settings(settings) is one
    assert one.options(settings, 1_000_000) != one.options(settings, 2_000_000)
    assert not any(row.needed for row in one.table.flat)


@pytest.mark.parametrize("one", registry.DISCIPLINES, ids=lambda one: one.name)
def test_the_keys_of_a_discipline_are_not_those_of_every_queue(one: AnyDiscipline) -> None:
    assert not {row.key for row in registry.ROWS} & set(one.table.keys.all)


def test_sizes_are_whole_packets_of_1514_bytes() -> None:
    options = attributes(memoryview(codel.DISCIPLINE.options(codel.CoDel(), 1515)))
    assert struct.unpack("=I", options[2]) == (2,)


TIMES = st.integers(1, 10_000_000)
GAINS = st.integers(0, 32)


@given(TIMES, TIMES, GAINS, GAINS, st.booleans(), st.integers(0, 100), st.integers(1, 65536))
def test_the_kernel_gets_the_settings_of_pie_in_its_own_units(
    target_us: int, update_us: int, alpha: int, beta: int, ecn: bool, percent: int, quantum: int
) -> None:
    """In the order of linux/pkt_sched.h: TCA_PIE_* and TCA_FQ_PIE_*."""
    same = (target_us / 1e6, update_us / 1e6, alpha, beta, ecn)
    for one, settings, wanted in (
        (pie, pie.Pie(*same), (target_us, 7, update_us, alpha, beta, ecn)),
        (
            fq_pie,
            fq_pie.FqPie(*same, ecn_up_to=percent / 100, quantum_bytes=quantum),
            (7, None, target_us, update_us, alpha, beta, quantum, 2**32 - 1, percent, ecn),
        ),
    ):
        found = attributes(memoryview(one.DISCIPLINE.options(settings, 7 * 1514)))
        assert {key: struct.unpack("=I", value)[0] for key, value in found.items()} == {
            key: value for key, value in enumerate(wanted, 1) if value is not None
        }


@pytest.mark.parametrize(
    ("one", "own", "counted"),
    [
        (codel.DISCIPLINE, struct.pack("=IIIIiIIII", 1514, 0, 0, 0, -1, 3, 9, 0, 0), (9, 17, 3)),
        (fq_codel.DISCIPLINE, struct.pack("=10I", 0, 1514, 3, 9, 0, 0, 0, 0, 0, 0), (9, 17, 3)),
        (pie.DISCIPLINE, struct.pack("=Q8I", 0, 0, 0, 0, 0, 17, 3, 0, 9), (9, 17, 3)),
        (fq_pie.DISCIPLINE, struct.pack("=9I", 0, 17, 3, 0, 9, 0, 0, 0, 0), (9, 17, 3)),
        (red.DISCIPLINE, struct.pack("=4I", 17, 3, 0, 9), (9, 17, 3)),
        (dualpi2.DISCIPLINE, struct.pack("=8Ii3I", *[0] * 6, 9, 4, -5, 0, 0, 0), (9, 12, 8)),
    ],
    ids=lambda one: one.name if isinstance(one, type(codel.DISCIPLINE)) else "",
)
def test_marks_and_drops_are_told_apart(
    one: AnyDiscipline, own: bytes, counted: tuple[int, int, int]
) -> None:
    assert one.counters is not None
    found = one.counters(Leaf(dropped_packets=20, over_limits=8, own=memoryview(own)))
    assert tuple(found.values())[:3] == counted


def test_cake_sums_its_classes() -> None:
    def packed(kind: int, payload: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(payload), kind) + payload

    def tin(number: int, *counts: int) -> bytes:
        kinds = zip((4, 6, 8), counts, strict=True)
        return packed(number, b"".join(packed(k, struct.pack("=I", n)) for k, n in kinds))

    own = packed(10, tin(1, 1, 2, 3) + tin(2, 10, 20, 30))
    assert cake.DISCIPLINE.counters is not None
    assert cake.DISCIPLINE.counters(Leaf(0, 0, memoryview(own))) == {
        "early_dropped_packets": 11,
        "ack_dropped_packets": 22,
        "marked_packets": 33,
    }


def test_red_takes_the_logarithms_of_the_algorithm() -> None:
    """A weight of 1/32 is the largest one that lets a burst of 50 packets pass (Floyd 1993, 6)."""
    settings = red.Red(30_000, 90_000)
    options = attributes(memoryview(red.DISCIPLINE.options(settings, 400_000)))
    limit, least, most, shift, decay, cell, flags = struct.unpack("=IIIBBBB", options[1])
    assert (limit, least, most, flags) == (400_000, 30_000, 90_000, 0)
    assert (shift, decay, cell) == (5, 22, 11)
    assert len(options[2]) == 256
    assert (options[2][0], options[2][255]) == (0, 31)


@pytest.mark.parametrize(
    ("queue_bytes", "shift"), [(1514, 1), (4_000, 1), (10_000_000, 9), (1_000_000_000, 3)]
)
def test_the_kernel_takes_red_of_any_size(queue_bytes: int, shift: int) -> None:
    """It multiplies a queue by a power of 2 in 32 bits."""
    options = attributes(memoryview(red.DISCIPLINE.options(red.Red(), queue_bytes)))
    _, _, most, found = struct.unpack_from("=IIIB", options[1])
    assert (found, most.bit_length() + found < 32) == (shift, True)
