"""How Multipath TCP is to use the links of a lab. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.scenario import LinkSettings

NO_COUPLING: Final = (
    "every subflow has a congestion control of its own: Linux' mainline has no coupled one, LIA nor "
    "another"
)
"""What stands beside figures of Multipath TCP: the publications' kernels had LIA."""


@dataclass(frozen=True, slots=True)
class PathUse:
    """How connections of Multipath TCP are to use the links. `first` has their first subflow (None:
    the scenario's first link). The other links are open at once, or `backups`: then they carry
    something only while the first cannot. Or `control` decides, from what happens
    (`lab/multipath/path_control.py`): eMPTCP by energy, or a schedule of least energy, or one link at a time.
    """

    first: str | None = None
    backups: bool = False
    control: Literal["", "energy", "schedule", "single-path"] = ""

    @property
    def needs_energy(self) -> bool:
        """Whether an energy model decides, of Wi-Fi and LTE."""
        return self.control in ("energy", "schedule")

    def first_of(self, links: Mapping[str, LinkSettings]) -> str:
        """The link of the first subflow; who saves energy begins over Wi-Fi."""
        if self.needs_energy:
            return link_of_kind(links, WIFI)
        return next(iter(links)) if self.first is None else self.first

    def misfit(self, links: Mapping[str, LinkSettings]) -> str | None:
        """Why these links cannot be used so, and what could be; None if they can."""
        return not_one_of_each(links) if self.needs_energy else None


def not_one_of_each(links: Mapping[str, LinkSettings]) -> str | None:
    """That there is not one link of Wi-Fi and one of LTE, in words; None if there is."""
    kinds = sorted(link.kind.name for link in links.values())
    if kinds != sorted((WIFI.name, LTE.name)):
        return f"needs one link of Wi-Fi and one of LTE, and there are {', '.join(kinds)}"
    return None


def link_of_kind(links: Mapping[str, LinkSettings], kind: LinkKind) -> str:
    """The first link of a kind; KeyError where there is none."""
    for name, link in links.items():
        if link.kind is kind:
            return name
    raise KeyError(kind.name)
