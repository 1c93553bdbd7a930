"""Defines the keys of `payload`, the file that is downloaded. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linklab.models.keys import SIZE
from linklab.schema.mapping import integer, within
from linklab.schema.quantities import Quantity, pattern
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class Payload:
    """The downloaded file, whose bytes are generated from `seed` (linklab.lab.programs.payload)."""

    size_bytes: int
    seed: int = 1
    sha256: str | None = None


_SEED: Final = Quantity(within(integer, 0, (1 << 63) - 1, "below 2^63"), int, "0 to below 2^63")

TABLE: Final = Table(
    Payload,
    (
        Row("size", "size_bytes", SIZE, "how large the file is", needed=True),
        Row("seed", "seed", _SEED, "decides the bytes of the file"),
        Row(
            "sha256",
            "sha256",
            pattern("[0-9a-f]{64}", "SHA-256", "64 digits of 0-9 and a-f"),
            "SHA-256 that the file must have",
            unset=None,
        ),
    ),
)
