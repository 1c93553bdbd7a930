"""Tests frames.py, and that no other module repeats these sizes."""

import pytest

from linklab.core import frames


def test_sizes_as_a_trace_of_packets_shows_them() -> None:
    assert (frames.FRAME_BYTES, frames.SEGMENT_BYTES, frames.ACK_BYTES) == (1514, 1448, 66)


def test_goodput_ratio() -> None:
    expected = 1448 / 1514 * 16384 / 16406 * 16384 / 16393
    assert frames.goodput_ratio() == pytest.approx(expected, rel=1e-12)


def test_a_header_of_ipv6_has_20_bytes_more() -> None:
    assert [frames.ack_bytes(families) for families in ((4,), (6,), (4, 6))] == [66, 86, 86]
    expected = 1428 / 1514 * 16384 / 16406 * 16384 / 16393
    for families in ((6,), (4, 6)):
        assert frames.goodput_ratio(families) == pytest.approx(expected, rel=1e-12)
