"""The keys of `published` and `findings`: what a publication reports. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linklab.models.keys import SHARE, TIME
from linklab.scenario.name import NAME
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import TEXT, WORDS
from linklab.schema.rows import Listed, Row, Table


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication reports for one algorithm in this scenario.

    `spread` is the standard deviation of the runs' rates over their median.
    """

    algorithm: str
    download_s: float
    source: str = ""
    link_delta_s: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Anything else that a publication reports for this scenario, in words: "time of eMPTCP
    against MPTCP", "+22 %".
    """

    what: str
    value: str
    source: str = ""


def _check(item: Mapping, row: Published) -> None:
    if row.download_s == 0:
        item.fail("download", "'0 s' is no download; allowed: a duration such as '16.55 s'")


def _check_different(top: Mapping, rows: list[tuple[Mapping, Published]]) -> None:
    seen: set[str] = set()
    for item, row in rows:
        if row.algorithm in seen:
            item.fail("algorithm", f"{row.algorithm!r} is listed twice")
        seen.add(row.algorithm)


_SOURCE: Final = Row("source", "source", TEXT, "where that stands", unset="")

PUBLISHED: Final = Listed(
    Table(
        Published,
        (
            Row(
                "algorithm",
                "algorithm",
                NAME,
                "who downloaded, as `linklab compare -a` has it",
                needed=True,
            ),
            Row("download", "download_s", TIME, "the median download", needed=True),
            Row(
                "link_delta", "link_delta_s", TIME, "time between the ends of the links", unset=None
            ),
            Row(
                "spread",
                "spread",
                SHARE,
                "the rates' standard deviation over their median",
                unset=None,
            ),
            _SOURCE,
        ),
        _check,
        about="What a publication reports for algorithms; `linklab reproduce` shows both.",
    ),
    _check_different,
)

FINDINGS: Final = Listed(
    Table(
        Finding,
        (
            Row("what", "what", WORDS, "such as energy of eMPTCP against MPTCP", needed=True),
            Row("value", "value", WORDS, "such as -8 %", needed=True),
            _SOURCE,
        ),
        about="Whatever else a publication reports, in words.",
    )
)
