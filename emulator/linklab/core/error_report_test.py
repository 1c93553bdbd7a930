"""Tests error_report.py."""

import pytest

from linklab.core.error_report import report_error


def test_an_error_report_begins_with_linklab(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(RuntimeError("no"))
    assert capsys.readouterr() == ("", "linklab: no\n")
