"""Defines energy models: a device's power while its links carry data, wait and sleep. Pure.

A model holds powers and energies per bit of one publication's device. Its file is in
`profiles/energy`. At each instant of a download the device draws

    base
    + phone           the phone besides its radios, also in their tails
    + processor       · the cores that the client keeps busy, if that was measured
    + shared          power while any link is active
    + both            for each active link after the first; negative if links share parts
    + for each link:  active, or promotion, or a state of its tail, or idle
                      + down · its downlink rate + up · its uplink rate

This is the form of GreenBag equation 5 (with `both`, `shared`, `base` 0), of Huang 5.2, and of the
model behind the table of eMPTCP 3.3. There the part that all links share makes using both
worthwhile.

`base` ends with the download. `phone` goes on until the radios sleep, and compared clients draw it for
the same time (`runs/one_window.py`): a phone is on, whichever client it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from linklab.core.link_kinds import KINDS, LinkKind
from linklab.energy.fitted_to import FITTED_TO, FittedTo
from linklab.schema.mapping import Keys, Mapping
from linklab.schema.quantities import TEXT, WORDS, duration, measure, pattern
from linklab.schema.rows import Listed, Row, Table

_POWER: Final = measure("mW", 0, 100_000)
_SIGNED_POWER: Final = measure("mW", -100_000, 100_000)
_PER_BIT: Final = measure("mJ/Mbit", 0, 100_000)


@dataclass(frozen=True, slots=True)
class Promotion:
    """The wake-up of a radio: `power_mw` for `time_s`, before the first packet."""

    power_mw: float
    time_s: float


@dataclass(frozen=True, slots=True)
class TailState:
    """A state of a radio after its last packet: `power_mw` for `time_s`."""

    power_mw: float
    time_s: float
    state: str = ""


@dataclass(frozen=True, slots=True)
class LinkEnergy:
    """The power of a link kind.

    Attributes:
        active_mw: power while the link carries anything, at any rate.
        down_mj_per_mbit, up_mj_per_mbit: energy per data, on top of `active_mw`. 1 mJ per Mbit is
            1 mW per Mbit/s.
        tail: the states after the last packet, in order.
    """

    active_mw: float = 0.0
    down_mj_per_mbit: float = 0.0
    up_mj_per_mbit: float = 0.0
    idle_mw: float = 0.0
    promotion: Promotion | None = None
    tail: tuple[TailState, ...] = ()

    @property
    def tail_s(self) -> float:
        """The time from the last packet until the radio is idle."""
        return sum(state.time_s for state in self.tail)


@dataclass(frozen=True, slots=True)
class EnergyModel:
    """The energy model of a device.

    `links` is by link kind; all links of a kind are alike. `fitted_to` are the published figures that
    the model was fitted to.
    """

    name: str
    device: str
    source: str
    links: dict[str, LinkEnergy]
    description: str = ""
    base_mw: float = 0.0
    phone_mw: float = 0.0
    shared_mw: float = 0.0
    both_mw: float = 0.0
    processor_mw: float = 0.0
    fitted_to: tuple[FittedTo, ...] = ()

    def link(self, kind: LinkKind) -> LinkEnergy:
        """Returns the power of a link kind. Raises KeyError if the model lacks it."""
        return self.links[kind.name]

    def unknown(self, kinds: Iterable[LinkKind]) -> list[str]:
        """Returns the titles of the kinds that the model lacks, sorted."""
        return sorted({kind.title for kind in kinds if kind.name not in self.links})


_PROMOTION: Final = Table(
    Promotion,
    (
        Row("power", "power_mw", _POWER, "power while the radio wakes", needed=True),
        Row("time", "time_s", duration(0.0, 60.0), "how long that takes", needed=True),
    ),
    about="Waking an idle radio.",
)

_TAIL: Final = Table(
    TailState,
    (
        Row("power", "power_mw", _POWER, "power in this state", needed=True),
        Row("time", "time_s", duration(0.0, 600.0), "duration of the state", needed=True),
        Row("state", "state", TEXT, "name of the state", unset=""),
    ),
    about="The states of a radio after its last packet, one after the other.",
)

LINK: Final = Table(
    LinkEnergy,
    (
        Row("active", "active_mw", _POWER, "power while the link carries anything, at any rate"),
        Row(
            "down",
            "down_mj_per_mbit",
            _PER_BIT,
            "additional energy per megabit received (1 mJ/Mbit is 1 mW per Mbit/s)",
        ),
        Row(
            "up",
            "up_mj_per_mbit",
            _PER_BIT,
            "additional energy per megabit sent, acknowledgements included",
        ),
        Row("idle", "idle_mw", _POWER, "power while the radio sleeps"),
        Row("promotion", "promotion", _PROMOTION, "waking an idle radio", unset=None),
        Row("tail", "tail", Listed(_TAIL), "states after the last packet", unset=()),
    ),
    about="The power of a link kind.",
)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Reads and writes the mapping from link kinds to their power."""

    allowed: str = f"any of {', '.join(KINDS)}, see below"

    def read(self, mapping: Mapping, key: str) -> dict[str, LinkEnergy]:
        kinds = mapping.sub(key, Keys((), tuple(KINDS)))
        if not kinds.values:
            mapping.fail(
                key, f"says nothing of any link; needed: one or more of {', '.join(KINDS)}"
            )
        return {name: LINK.read(kinds, name) for name in KINDS if kinds.has(name)}

    def write(self, links: dict[str, LinkEnergy]) -> dict[str, Any]:
        return {name: LINK.write(one) for name, one in links.items()}


def _check(mapping: Mapping, model: EnergyModel) -> None:
    """Refuses a negative `both` that would give a device negative power."""
    for one in model.links.values():
        if model.both_mw + one.active_mw < 0:
            mapping.fail(
                "both", "a further link would draw less than nothing; allowed: at least -`active`"
            )


TABLE: Final = Table(
    EnergyModel,
    (
        Row(
            "name",
            "name",
            pattern("[a-z0-9][a-z0-9-]{0,63}", "name", "up to 64 of a-z, 0-9 and -"),
            "the file's name without .yaml",
            needed=True,
        ),
        Row("device", "device", WORDS, "what was measured", needed=True),
        Row("source", "source", WORDS, "where the figures come from", needed=True),
        Row("description", "description", TEXT, "notes on the model", unset=""),
        Row("base", "base_mw", _POWER, "power during the whole download"),
        Row(
            "phone",
            "phone_mw",
            _POWER,
            "power of the phone besides its radios, until they sleep",
            unset=0.0,
        ),
        Row("shared", "shared_mw", _POWER, "power while any link is active"),
        Row(
            "both",
            "both_mw",
            _SIGNED_POWER,
            "power for each active link after the first",
        ),
        Row(
            "processor",
            "processor_mw",
            _POWER,
            "power of one busy core, if measured separately",
            unset=0.0,
        ),
        Row("links", "links", Kinds(), "power by link kind", needed=True),
        Row(
            "fitted_to",
            "fitted_to",
            Listed(FITTED_TO),
            "published figures that it was fitted to",
            unset=(),
        ),
    ),
    _check,
)


def to_yaml(model: EnergyModel) -> str:
    """Writes the canonical form, with every value that the energy depends on. `library.parse` reads it
    back."""
    written = TABLE.write(model, without=("fitted_to",))
    return yaml.safe_dump(written, sort_keys=False, allow_unicode=True, width=100)
