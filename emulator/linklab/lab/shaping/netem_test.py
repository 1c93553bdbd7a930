import math
import statistics
import struct

import pytest

from linklab.core.netlink_messages import attributes
from linklab.lab.shaping import netem
from linklab.lab.shaping.conftest import ADD, INDEX, ROOT, decoded
from linklab.lab.shaping.netem import Settings


def test_netem_states_everything() -> None:
    message = netem.put(INDEX, Settings(0.005, loss_ratio=0.003), 2**63 + 5, new=True)
    read, options = decoded(message)
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (ROOT, 0xFFFFFFFF, ADD)
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003, abs=1e-9)
    assert options.get_attr("TCA_NETEM_RATE")["rate"] == 2**32 - 1  # type: ignore[attr-defined]
    for kind, form, value in ((10, "=q", 5_000_000), (11, "=q", 0), (14, "=Q", 2**63 + 5)):
        assert struct.pack("=HH", 12, kind) + struct.pack(form, value) in message


def slots(message: bytes) -> dict[int, memoryview]:
    """The attributes behind netem's struct, which says nothing of its own length."""
    begin = message.index(b"netem\0") + 8 + 4 + 24
    return attributes(memoryview(message)[begin:])


def test_netem_has_moments_with_exponential_distances_where_they_are_asked_for() -> None:
    options = slots(netem.put(INDEX, Settings(slot_s=0.002), 1))
    assert struct.unpack("=qqiiqq", options[12]) == (0, 0, 0, 0, 2_000_000, 4_000_000)
    times = [1 + 2 * one / 8192 for (one,) in struct.iter_unpack("=h", options[13])]
    assert statistics.fmean(times) == pytest.approx(1, abs=1e-3)
    assert statistics.pstdev(times) == pytest.approx(1, abs=2e-3)
    assert statistics.median(times) == pytest.approx(math.log(2), abs=1e-3)
    assert min(times) >= 0
    ended = slots(netem.put(INDEX, Settings(), 1))
    assert ended[12] == bytes(40)
    assert 13 not in ended
