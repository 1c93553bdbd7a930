import struct

from linklab.lab.shaping import netem, tc
from linklab.lab.shaping.tc import Counters


def test_counters_and_the_seed_are_read_from_an_answer() -> None:
    stats = struct.pack("=QIIIIIII", 3028, 2, 5, 9, 0, 0, 1, 1514)
    seed = struct.pack("=HHQ", 12, 14, 77)
    attributes = (
        struct.pack("=HH", 8, 1)
        + b"xyz\0"
        + struct.pack("=HH", 4 + 24 + 12, 2)
        + bytes(24)
        + seed
        + struct.pack("=HH", 4 + len(stats), 3)
        + stats
    )
    answer = struct.pack("=IHHII", 36 + len(attributes), 36, 0, 0, 0) + bytes(20) + attributes
    assert tc.counters(answer) == Counters(3028, 2, 5, 1514, 1)
    assert netem.seed(answer) == 77
