import struct

import pytest

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
