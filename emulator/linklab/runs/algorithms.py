"""multilink's algorithms: the table that client/internal/schedule/algorithms.go writes."""

from __future__ import annotations

import msgspec

from linklab.core import paths


class Algorithm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row. `alias` says what the algorithm does, and commands take it like the name; "" if
    there is none. `options` are the flags of multilink on which it depends, without their
    dashes. `source` is where it is published, "" if it is not.
    """

    name: str
    alias: str
    about: str
    source: str
    options: tuple[str, ...]
    one_link: bool


TABLE: tuple[Algorithm, ...] = msgspec.json.decode(
    paths.ALGORITHMS.read_bytes(), type=tuple[Algorithm, ...]
)
