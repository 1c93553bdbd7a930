"""Tests of complaint.py."""

from __future__ import annotations

import pytest

from linklab.core.complaint import complain


def test_a_complaint_is_in_linklab_s_name(capsys: pytest.CaptureFixture[str]) -> None:
    complain(RuntimeError("no"))
    assert capsys.readouterr() == ("", "linklab: no\n")
