"""What a link model is to everybody else: its keys, its layer, its words. Pure.

One value of `Model` in each model's file says all of it; `registry.py` lists them. Nothing else
knows a model by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import Any, Generic, TypeVar

from linklab.core.link_kinds import KINDS, LinkKind
from linklab.core.link_state import LinkState
from linklab.models.layer import Layer
from linklab.models.seeds import quantile_for, random_for
from linklab.schema.mapping import Mapping
from linklab.schema.rows import Mappings, Row
from linklab.traces.trace import TraceSample

S = TypeVar("S")


class Stage(IntEnum):
    """Where in the stack a model's layer is; of one place, in the registry's order."""

    CAPACITY = 1
    """What the network has to give, instead of the constant base."""
    RUN = 2
    """How a run differs from the others."""
    LIMIT = 3
    """What somebody else makes of it."""
    RADIO = 4
    """What the phone's radio gets of that."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened to a link: its kind, and what it came to ("" where nothing more
    is to be said)."""

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Making:
    """What a layer is made with besides its settings: its link in the run with a seed."""

    run_seed: int
    link: str
    step_s: float

    def random(self, what: str) -> Random:
        """Randomness that is this link's and that of `what` alone."""
        return random_for(self.run_seed, self.link, what)

    def quantile(self, what: str) -> float:
        """The run's place among all runs, from 0 to below 1 (`seeds.quantile_for`)."""
        return quantile_for(self.run_seed, self.link, what)


FindTrace = Callable[[str], tuple[Path, tuple[TraceSample, ...]]]
"""Finds a trace by name or path and reads it, else ValueError."""


@dataclass(frozen=True, slots=True)
class Around:
    """What of its link and scenario a model is read with.

    `down_rate_bps`, `up_rate_bps` and `loss_burst_packets` are the link's own. `nodes` are the
    names of the lab's nodes so far; a model that brings further ones adds them.
    """

    down_rate_bps: int
    up_rate_bps: int
    loss_burst_packets: float
    find_trace: FindTrace
    nodes: set[str]


@dataclass(frozen=True, slots=True)
class Model(Generic[S]):
    """A link model.

    `rows` are its keys in a link of a scenario, of which the first one is read into `settings`
    where it is there; `reader` and `writer` do it where that is not all. A link without the model
    has None. `layer` makes its layer; `place` is where that stands over the others', and `kinds`
    are the links that it is for. `summary` are its keys and a few words about its settings.
    `transitions` says what happened between two states of a link, by what the model alone
    changes in them, and `happenings` are the kinds that it says. `access_points` are the names of
    those that the client may be attached to.
    """

    settings: type[S]
    rows: tuple[Row, ...]
    layer: Callable[[S, Making], Layer]
    place: Stage
    summary: Callable[[S], list[tuple[str, str]]]
    kinds: tuple[LinkKind, ...] = tuple(KINDS.values())
    reader: Callable[[Mapping, Around], S | None] | None = None
    writer: Callable[[S | None], Mappings] | None = None
    transitions: Callable[[LinkState, LinkState], list[Happening]] = lambda before, after: []
    happenings: tuple[str, ...] = ()
    access_points: Callable[[S], tuple[str, ...]] = lambda settings: ()

    def read(self, link: Mapping, around: Around) -> S | None:
        """The settings that a link has in a file. Raises ScenarioError."""
        if self.reader is not None:
            return self.reader(link, around)
        row = self.rows[0]
        found: S | None = row.value.read(link, row.key) if link.has(row.key) else None
        return found

    def write(self, settings: S | None) -> Mappings:
        """The model's keys in the canonical form of a link."""
        if self.writer is not None:
            return self.writer(settings)
        row = self.rows[0]
        return {} if settings is None else {row.key: row.value.write(settings)}


AnyModel = Model[Any]
