"""What went wrong, said on stderr."""

from __future__ import annotations

import sys


def complain(error: object) -> None:
    """Says it in linklab's name."""
    print(f"linklab: {error}", file=sys.stderr)
