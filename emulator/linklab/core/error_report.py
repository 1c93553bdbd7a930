"""Reports errors to the user on standard error."""

from __future__ import annotations

import sys


def report_error(error: object) -> None:
    """Prints an error or a warning in one line that begins with `linklab: `."""
    print(f"linklab: {error}", file=sys.stderr)
