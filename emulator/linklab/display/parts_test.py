import contextlib
import io
import os
import pty
import re
import time
from collections.abc import Callable

import pytest

from linklab.display.parts import PROGRESS_FD, Parts, bar_line


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No set-up runs these tests' parts."""
    monkeypatch.delenv(PROGRESS_FD, raising=False)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_without_a_terminal_a_part_is_said_at_its_start_and_its_end() -> None:
    said = io.StringIO()
    with Parts(said) as parts:
        kernel, image = parts.part("kernel"), parts.part("image")
        kernel("compiling, 1 of 610 objects", 0.1)
        kernel("compiling, 2 of 610 objects", 0.2)
        image("fetching 1 of 45 MB", 0.1)
        kernel("finished", 1)
        kernel("finished", 1)
    assert said.getvalue().splitlines() == [
        "linklab: kernel: compiling, 1 of 610 objects",
        "linklab: image: fetching 1 of 45 MB",
        "linklab: kernel: finished",
    ]


def test_without_a_terminal_no_part_is_silent_for_longer_than_the_period() -> None:
    """Even if it reports nothing."""
    said = io.StringIO()
    with Parts(said, period_s=0.3) as parts:
        parts.report("kernel", "unpacking the source", 0.25)
        parts.report("image", "finished", 1)
        until(lambda: said.getvalue().count("linklab: kernel: unpacking the source") >= 3)
    assert said.getvalue().count("image") == 1


def test_at_a_terminal_each_part_has_a_line_that_disappears() -> None:
    own, program_end = pty.openpty()
    os.set_blocking(own, False)
    shown = bytearray()

    def drawn() -> str:
        with contextlib.suppress(BlockingIOError):
            while True:
                shown.extend(os.read(own, 1 << 16))
        # A busy machine draws late.
        return re.sub(r" \d:\d\d ", " 0:00 ", shown.decode(errors="ignore"))

    with os.fdopen(program_end, "w") as terminal:
        with Parts(terminal) as parts:
            parts.report("kernel", "compiling, 305 of 610 objects", 0.5)
            parts.report("image", "fetching 1 of 45 MB", 0.1)
            until(lambda: "image    ━━────────────────── 0:00 fetching 1 of 45 MB\r\n" in drawn())
            parts.say("a line of make's\033[2J")
        said = drawn()
    os.close(own)
    assert "kernel   ━━━━━━━━━━────────── 0:00 compiling, 305 of 610 objects\r\n" in said
    assert "\033[2F\033[Ja line of make's\\x1b[2J\r\n" in said
    assert said.endswith(("\\x1b[2J\r\n", "\033[2F\033[J"))


def test_a_line_is_no_wider_than_the_terminal() -> None:
    assert len(bar_line("kernel", "compiling " * 30, 0.5, 61, 79)) == 79
    assert " 1:01 " in bar_line("kernel", "compiling", 2.0, 61, 79)


def test_within_a_set_up_progress_goes_to_its_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setenv(PROGRESS_FD, str(writing))
    said = io.StringIO()
    with Parts(said) as parts:
        parts.report("Go", "compiling, 1 of 200 packages", 0.25)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "Go\t0.2500\tcompiling, 1 of 200 packages\n"
    assert said.getvalue() == ""
