"""Tests of complaint.py."""

from __future__ import annotations

import pytest

from linklab.core.complaint import complain


def test_a_terminal_does_not_obey_a_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    complain(RuntimeError("\x1b[2J no"))
    assert capsys.readouterr() == ("", "linklab: \\x1b[2J no\n")
