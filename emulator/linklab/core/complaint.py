"""What went wrong, said on stderr."""

from __future__ import annotations

import sys

from linklab.core.printable import printable


def complain(error: object) -> None:
    """Says it in linklab's name."""
    print(f"linklab: {printable(str(error))}", file=sys.stderr)
