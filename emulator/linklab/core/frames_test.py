"""Tests frames.py, and that no other module repeats these sizes."""

import ast
from pathlib import Path

import pytest

from linklab.core import frames

PACKAGE = Path(__file__).parents[1]


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


def test_no_other_module_has_them_as_numbers() -> None:
    sizes = {frames.FRAME_BYTES, frames.SEGMENT_BYTES, frames.MTU_BYTES}
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "frames.py" and not path.name.endswith("_test.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in sizes
    ]
    assert found == []
