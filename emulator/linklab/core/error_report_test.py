"""Tests error_report.py."""

from __future__ import annotations

import pytest

from linklab.core.error_report import report_error


def test_an_error_report_begins_with_linklab(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(RuntimeError("no"))
    assert capsys.readouterr() == ("", "linklab: no\n")
