"""Defines which published figures a model or a constant was fitted to. Pure.

A statement about such figures alone shows that a fit works. It is no evidence for the lab.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any, Final

from linklab.schema.mapping import Keys, Mapping
from linklab.schema.quantities import TEXT, WORDS
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class FittedTo:
    """Identifies published figures: each of `metrics` for each client of `cells`, by scenario.

    `link` limits measures of one link to that link, "" stands for all. `publication` is the name of
    the publication's file, "" for the file itself.
    """

    metrics: tuple[str, ...]
    cells: Map[str, tuple[str, ...]] = field(hash=False)
    link: str = ""
    publication: str = ""

    def covers(self, metric: str, link: str, scenario: str, client: str) -> bool:
        """Tells whether a figure is one of these."""
        return (
            metric in self.metrics
            and self.link in ("", link)
            and client in self.cells.get(scenario, ())
        )


@dataclass(frozen=True, slots=True)
class _Names:
    allowed: str

    def read(self, mapping: Mapping, key: str) -> tuple[str, ...]:
        return tuple(mapping.each(key, WORDS.parse))

    def write(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


@dataclass(frozen=True, slots=True)
class _Cells:
    allowed: str = "lists of clients by scenario"

    def read(self, mapping: Mapping, key: str) -> dict[str, tuple[str, ...]]:
        rows = mapping.sub(key, Keys((), named=WORDS.parse))
        return {name: tuple(rows.each(name, WORDS.parse)) for name in rows.values}

    def write(self, value: Map[str, tuple[str, ...]]) -> dict[str, Any]:
        return {name: list(clients) for name, clients in value.items()}


_ROWS: Final = (
    Row("metrics", "metrics", _Names("a list of measures"), "what was measured", needed=True),
    Row("cells", "cells", _Cells(), "of which clients in which scenarios", needed=True),
    Row("link", "link", TEXT, "of this link only", unset=""),
)

FIGURES: Final = Table(FittedTo, _ROWS, about="Published figures of the same file.")

FITTED_TO: Final = Table(
    FittedTo,
    (
        Row("publication", "publication", WORDS, "name of the publication's file", needed=True),
        *_ROWS,
    ),
    about="Published figures that the model was fitted to. `linklab reproduce` counts them as calibration.",
)
