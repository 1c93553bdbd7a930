"""Tests printing.py."""

import io
import re
import sys
import traceback
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import linklab
from linklab.core.error_report import report_error
from linklab.display import printing

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202e\u2066\u2028\u2029\r[/x]:smile:\udcff"
SHOWN = r"\x1b]0;owned\x07\x9b2J\u202e\u2066\u2028\u2029\r[/x]:smile:\udcff"


def test_words_are_escaped_whoever_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with printing.escaped(), printing.escaped():
        print(HOSTILE)
        report_error(HOSTILE)
        sys.stderr.writelines([HOSTILE, "\n"])
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            traceback.print_exc()
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert out == f"{SHOWN}\n"
    assert err.count(SHOWN) == 3
    assert err.replace("\n", "").isprintable()


def test_after_an_error_that_nobody_expected_its_traceback_is_escaped_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    with pytest.raises(ValueError, match="owned"), printing.escaped():
        raise ValueError(HOSTILE)
    print(HOSTILE, file=sys.stderr)
    assert capsys.readouterr().err == f"{SHOWN}\n"


def test_rich_keeps_its_colours_and_escapes_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with printing.escaped():
        console = printing.console()
        console.width = 200
        table = Table(title=HOSTILE)
        table.add_column(HOSTILE)
        table.add_row(Text(HOSTILE, style="red"))
        console.print(table)
        console.print(HOSTILE)
    said = stream.getvalue()
    assert "\x1b[31m" in said
    assert said.count("\\x1b]0;owned") >= 3
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert plain.replace("\n", "").isprintable()


def test_nobody_prints_past_it() -> None:
    package = Path(linklab.__file__).parent
    past = re.compile(r"\bConsole\(|sys\.__std|os\.write\([12],|open\(\"/dev/(tty|stdout|stderr)")
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if not file.name.endswith("_test.py") and past.search(file.read_text())
    }
    assert found == {"report/tables.py"}, "which makes a string"
