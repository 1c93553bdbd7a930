"""Tests printable.py."""

import os

import pytest

from linklab.core.printable import as_utf8, printable


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b2J\x7f\u202eb", "\\x9b2J\\x7f\\u202eb"),
        ("half \udc9b\ud800", "half \\udc9b\\ud800"),
        ("one\ntwo\r\tthree", "one\ntwo\\r\\tthree"),
        ("größer 文件 █▌ 🙂 a\\b", "größer 文件 █▌ 🙂 a\\b"),
        ("\U000e0001", "\\U000e0001"),
        ("", ""),
    ],
)
def test_a_terminal_obeys_nothing(words: str, shown: str) -> None:
    assert printable(words) == shown


def test_one_line_keeps_no_break() -> None:
    assert printable("one\ntwo", keep="") == "one\\ntwo"


def test_a_file_can_hold_every_name() -> None:
    name = os.fsdecode("größer".encode() + b"\xff")
    assert as_utf8(name) == "größer\\udcff"
