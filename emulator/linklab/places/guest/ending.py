"""Tells from its run directory how a guest ended, and removes what is unsafe there."""

from __future__ import annotations

import shutil
from pathlib import Path

from linklab.core import plain_file
from linklab.core.errors import LinklabError
from linklab.core.paths import GUEST_EXIT_FILE
from linklab.places.guest.leftover_files import remove_unsafe

CONSOLE = "console.log"
"""The file of the run directory with the guest's console."""

_EXIT_BYTES = 32
_LAST_WORDS_BYTES = 4096
_CONSOLE_BYTES = 1 << 20
"""The most bytes read of the guest's exit code and console. A guest may make the files larger."""

_OUT_OF_MEMORY = b"Kernel panic - not syncing: Out of memory"
"""The guest kernel's message when memory runs out (mm/oom_kill.c)."""

_LEAST_FREE_BYTES = 1 << 20
"""With less free space the run directory's disk counts as full."""


class GuestError(LinklabError, RuntimeError):
    """The guest failed. The message ends with the path of its console log."""


def hung(timeout_s: float, console: Path, clock: str = "virtual", seen: str = "") -> str:
    """Returns the message for a guest that was ended after `timeout_s`. `seen` says why, "" if nobody
    knows."""
    remedy = seen or "--timeout allows more"
    if clock == "virtual" and not seen:
        remedy += (
            "; if a program waits by looking at memory in a loop, virtual time stands: --clock real"
        )
    return (
        f"the guest was still running after {timeout_s:.0f} s of wall-clock time "
        f"and was ended ({remedy}); its console: {console}"
    )


def tidy(directory: Path) -> str:
    """Removes unsafe files, which the console names. Returns an error message, or nothing."""
    try:
        removed = remove_unsafe(directory)
        if removed:
            with (directory / CONSOLE).open("a") as log:
                log.write(f"linklab: removed what is no plain file: {', '.join(removed)}\n")
    except OSError as error:
        return f"what the guest left cannot be looked through: {error}"
    return ""


def exit_code(run_dir: Path, memory: int) -> int:
    """Returns the exit code of the execution in a guest with `memory` bytes.

    Raises GuestError if the guest failed earlier, or ran out of memory.
    """
    console = run_dir / CONSOLE
    if _OUT_OF_MEMORY in _end_of(console, _CONSOLE_BYTES):
        raise GuestError(
            f"the guest ran out of memory ({memory >> 20} MiB): programs, files below /tmp "
            "and packets that wait share it; use less of them, a smaller `queue` or --place host; "
            f"its console: {console}"
        )
    try:
        with plain_file.opened(run_dir / GUEST_EXIT_FILE) as file:
            return int(file.read(_EXIT_BYTES))
    except (OSError, ValueError):
        words = "\n  ".join(_last_words(console)) or "(nothing)"
        is_full = shutil.disk_usage(run_dir).free < _LEAST_FREE_BYTES
        why = ", and the disk of its run directory is full" if is_full else ""
        raise GuestError(
            f"the guest ended without finishing{why}; "
            f"the end of its console ({console}):\n  {words}"
        ) from None


def _last_words(console: Path) -> list[str]:
    """Returns the last lines of the guest's console."""
    said = _end_of(console, _LAST_WORDS_BYTES)
    return said.decode(errors="replace").strip().splitlines()[-5:]


def _end_of(console: Path, most: int) -> bytes:
    """Returns the last bytes of the guest's console; none if the guest has removed the file."""
    try:
        return plain_file.end(console, most)
    except OSError:
        return b""
