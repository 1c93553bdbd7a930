"""Defines the description of a link model: its keys, its layer, its summary. Pure.

Each model's file has one value of `Model`, and `registry.py` lists them. No other code names a model.
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
    """The position of a model's layer in the stack. Equal positions keep the registry's order."""

    CAPACITY = 1
    """The network's capacity, which replaces the constant base."""
    RUN = 2
    """The variation between runs."""
    LIMIT = 3
    """Limits by others."""
    RADIO = 4
    """The phone's radio."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a link: its kind, and a detail or ""."""

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Making:
    """What a layer is made with besides its settings: the run's seed, the link, the step."""

    run_seed: int
    link: str
    step_s: float

    def random(self, what: str) -> Random:
        """Returns a random generator for this link and the purpose `what`."""
        return random_for(self.run_seed, self.link, what)

    def quantile(self, what: str) -> float:
        """Returns the run's position among all runs, from 0 to below 1 (`seeds.quantile_for`)."""
        return quantile_for(self.run_seed, self.link, what)


FindTrace = Callable[[str], tuple[Path, tuple[TraceSample, ...]]]
"""A function that finds a trace by name or path, and reads it. It raises ValueError."""


@dataclass(frozen=True, slots=True)
class Around:
    """The parts of link and scenario that reading a model needs.

    `down_rate_bps`, `up_rate_bps`, `rtt_s` and `loss_burst_packets` are the link's own. `nodes` has the
    names of the lab's nodes so far. A model adds the names of its nodes.
    """

    down_rate_bps: int
    up_rate_bps: int
    rtt_s: float
    loss_burst_packets: float
    find_trace: FindTrace
    nodes: set[str]


@dataclass(frozen=True, slots=True)
class Model(Generic[S]):
    """A link model.

    Attributes:
        settings: class of its settings. A link without the model has None.
        rows: its keys in a link of a scenario. The first one is read into `settings` if present.
        layer: makes its layer.
        place: position of its layer in the stack.
        summary: returns its keys, each with a few words about the settings.
        kinds: link kinds that it is for.
        reader, writer: read and write the settings if the first row is not enough.
        transitions: returns what happened between two states of a link, by the values that only this
            model changes.
        happenings: the kinds that `transitions` returns.
        access_points: returns the names of its access points.
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
        """Reads the model's settings of a link. Raises ScenarioError."""
        if self.reader is not None:
            return self.reader(link, around)
        row = self.rows[0]
        found: S | None = row.value.read(link, row.key) if link.has(row.key) else None
        return found

    def write(self, settings: S | None) -> Mappings:
        """Writes the model's keys in the canonical form of a link."""
        if self.writer is not None:
            return self.writer(settings)
        row = self.rows[0]
        return {} if settings is None else {row.key: row.value.write(settings)}


AnyModel = Model[Any]
