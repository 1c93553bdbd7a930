"""Defines the keys of `client`, which are options of multilink. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linklab.core.algorithms import DEFAULTS
from linklab.models.keys import SHARE, SIZE
from linklab.schema.quantities import duration
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Constants of the algorithms. The defaults are multilink's, which names their sources.

    Attributes:
        upper_limit_bytes: U of algorithm 1 (thesis 4.3.3).
        padding: f of padded algorithm 3 (thesis 4.3.5).
        overlap: share of a request after which the next one is issued.
        window_s: time over which throughput is measured.
        first_request_bytes: initial size that the links share.
        segment_bytes: Z of GreenBag (GreenBag IV-B).
    """

    upper_limit_bytes: int = DEFAULTS["upper_limit_bytes"]
    padding: float = DEFAULTS["padding"]
    overlap: float = DEFAULTS["overlap"]
    window_s: float = DEFAULTS["window_ns"] / 1e9
    first_request_bytes: int = DEFAULTS["first_request_bytes"]
    segment_bytes: int = DEFAULTS["segment_bytes"]

    @property
    def flags(self) -> frozenset[str]:
        """Returns the flags of multilink that a scenario sets."""
        return frozenset(_flag(row) for row in TABLE.flat)

    def flag(self, name: str) -> str:
        """Returns the value of multilink's flag `name`, which is a key with dashes.

        Raises KeyError if it is no key.
        """
        row = next((row for row in TABLE.flat if _flag(row) == name), None)
        if row is None:
            raise KeyError(name)
        unit = row.attribute.rpartition("_")[2]
        return f"{getattr(self, row.attribute)}{_UNITS.get(unit, '')}"


def _flag(row: Row) -> str:
    return row.key.replace("_", "-")


_UNITS: Final = {"bytes": "B", "s": "s"}
"""multilink's units, by the units of attributes."""

_WINDOW: Final = duration(1e-3, 3600.0)

TABLE: Final = Table(
    ClientSettings,
    (
        Row("upper_limit", "upper_limit_bytes", SIZE, "U of `alg1`"),
        Row("padding", "padding", SHARE, "f of `alg3`"),
        Row("overlap", "overlap", SHARE, "part of a request after which the next one is sent"),
        Row("window", "window_s", _WINDOW, "time over which throughput is averaged"),
        Row(
            "first_request",
            "first_request_bytes",
            SIZE,
            "sum of the links' first requests",
        ),
        Row(
            "segment",
            "segment_bytes",
            SIZE,
            "size of GreenBag's segments",
            unset=DEFAULTS["segment_bytes"],
        ),
    ),
)
