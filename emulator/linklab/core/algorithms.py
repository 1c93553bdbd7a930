"""multilink's algorithms and their settings: the table that
client/internal/schedule/algorithms.go writes."""

from __future__ import annotations

import msgspec

from linklab.core import shared_tables


class Algorithm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row. `alias` says what the algorithm does, and commands take it like the name; "" if
    there is none. `options` are the flags of multilink on which it depends, without their
    dashes, `needs` those without which it cannot decide. `source` is where it is published, "" if
    it is not. `kinds` are the kinds of links between which it decides, empty where any will do. `rescue` says that it is a part of rescue, and nothing without. `compared` says that
    it is a row of the thesis' tables, `uploads` that it decides about uploads too.
    """

    name: str
    alias: str
    about: str
    source: str
    options: tuple[str, ...]
    needs: tuple[str, ...]
    one_link: bool
    rescue: bool
    compared: bool
    uploads: bool
    kinds: tuple[str, ...] = ()


class Defaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings where nothing else is said; algorithms.go says what they mean and where
    they come from."""

    upper_limit_bytes: int
    padding: float
    first_request_bytes: int
    overlap: float
    window_ns: int
    connections: int
    segment_bytes: int


class _Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    defaults: Defaults
    algorithms: tuple[Algorithm, ...]


_SHARED = msgspec.json.decode(shared_tables.ALGORITHMS, type=_Shared)

DEFAULTS = _SHARED.defaults
TABLE = _SHARED.algorithms
