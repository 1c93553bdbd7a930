"""Runs pytest inside the lab, as `linklab exec` runs any program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from linklab.api import functions
from linklab.api.progress import PLACE, RUNS, Progress
from linklab.core.error_report import report_error
from linklab.core.errors import LinklabError
from linklab.core.limits import MAX_TIME_S
from linklab.display.parts import Parts

_NO_CACHE = "ignore::pytest.PytestCacheWarning"
"""Programs in the guest cannot write the project's directory."""

_USAGE_ERROR = 4
"""pytest's exit code for what cannot be carried out as given."""


def run(scenario: str, arguments: Sequence[str]) -> int:
    """Runs pytest with these arguments behind the scenario's links. Passes on its output, and
    returns its exit code."""
    color = ("--color=yes",) if sys.stdout.isatty() else ()
    command = [sys.executable, "-m", "pytest", *arguments, "-W", _NO_CACHE, *color]
    try:
        with Parts() as parts:

            def show(now: Progress) -> None:
                if now.part == PLACE:
                    print(f"linklab: tests behind {scenario}, {now.what}", file=sys.stderr)
                elif now.part != RUNS:
                    parts.report(now.part, now.what, now.done / now.total)

            done = functions.execute(scenario, command, timeout=MAX_TIME_S, progress=show)
    except (LinklabError, OSError) as error:
        report_error(error)
        return _USAGE_ERROR
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.exit_code
