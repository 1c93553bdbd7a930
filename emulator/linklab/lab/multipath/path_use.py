"""Describes how Multipath TCP uses the links of a lab. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.scenario import LinkSettings

NO_COUPLING: Final = (
    "every subflow has a congestion control of its own, as in mainline Linux; mptcp-2016 has the "
    "publications' LIA"
)
"""The note beside figures of Multipath TCP without coupled congestion control."""


@dataclass(frozen=True, slots=True)
class PathUse:
    """Describes how connections of Multipath TCP use the links. `first` has the first subflow
    (None: the scenario's first link). The other links are open at once. As `backups` they carry
    data only while the first one cannot. If `control` is set, it decides during the run
    (`lab/multipath/path_control.py`): eMPTCP by energy, a schedule of least energy, or one link at
    a time. `scheduler` and `congestion_control` replace the scenario's at both ends."""

    first: str | None = None
    backups: bool = False
    control: Literal["", "energy", "schedule", "single-path"] = ""
    scheduler: str | None = None
    congestion_control: str | None = None

    @property
    def sysctls(self) -> dict[str, str]:
        """The sysctls of both end hosts that replace the scenario's."""
        asked = {
            "net.mptcp.scheduler": self.scheduler,
            "net.ipv4.tcp_congestion_control": self.congestion_control,
        }
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def forecasts_lte(self) -> bool:
        """Whether eMPTCP forecasts LTE's rate, as published. With mainline's scheduler its highest rate
        counts instead (`HighestRate` in `energy/path_usage.py` says why)."""
        return self.scheduler is not None

    @property
    def needs_energy(self) -> bool:
        """Whether an energy model decides between Wi-Fi and LTE."""
        return self.control in ("energy", "schedule")

    def first_of(self, links: Mapping[str, LinkSettings]) -> str:
        """Returns the link of the first subflow. Energy-saving controls begin with Wi-Fi."""
        if self.needs_energy:
            return link_of_kind(links, WIFI)
        return next(iter(links)) if self.first is None else self.first

    def misfit(self, links: Mapping[str, LinkSettings]) -> str | None:
        """Returns why these links do not fit and what would, None if they fit."""
        return not_one_of_each(links) if self.needs_energy else None


def not_one_of_each(links: Mapping[str, LinkSettings]) -> str | None:
    """Returns an error unless there is exactly one link of Wi-Fi and one of LTE."""
    kinds = sorted(link.kind.name for link in links.values())
    if kinds != sorted((WIFI.name, LTE.name)):
        return f"needs one link of Wi-Fi and one of LTE, and there are {', '.join(kinds)}"
    return None


def link_of_kind(links: Mapping[str, LinkSettings], kind: LinkKind) -> str:
    """Returns the first link of a kind. Raises KeyError if there is none."""
    for name, link in links.items():
        if link.kind is kind:
            return name
    raise KeyError(kind.name)
