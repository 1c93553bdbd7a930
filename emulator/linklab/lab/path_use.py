"""How Multipath TCP is to use the links of a lab. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_COUPLING: Final = (
    "every subflow has a congestion control of its own: Linux' mainline has no coupled one, LIA nor "
    "another"
)
"""What stands beside figures of Multipath TCP: the publications' kernels had LIA."""


@dataclass(frozen=True, slots=True)
class PathUse:
    """How connections of Multipath TCP are to use the links. `first` has their first subflow (None:
    the scenario's first link). The other links are open at once, or `backups`: then they carry
    something only while the first cannot."""

    first: str | None = None
    backups: bool = False
