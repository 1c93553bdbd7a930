"""Reads the table of multilink's algorithms, which client/internal/schedule/algorithms.go writes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from linklab.core import shared_tables


class Algorithm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table.

    Attributes:
        alias: a second name that says what the algorithm does; "" if there is none.
        source: where it is published; "" if it is not.
        options: multilink's flags that change it, without dashes.
        needs: flags that it requires.
        rescue: it is a part of rescue, and does nothing without it.
        compared: it is a row of the thesis' tables.
        uploads: it also schedules uploads.
        kinds: link kinds between which it decides; empty if any will do.
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


class _Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    defaults: dict[str, Any]
    algorithms: tuple[Algorithm, ...]


_SHARED = msgspec.json.decode(shared_tables.ALGORITHMS, type=_Shared)

DEFAULTS: Final = _SHARED.defaults
"""The default settings by name. algorithms.go explains them and names their sources."""

TABLE = _SHARED.algorithms
