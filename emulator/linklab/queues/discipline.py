"""Defines what a queue discipline is: names, keys, netlink options, counters. Pure.

Each discipline's file has one `Discipline` value. `registry.py` lists them. No other code knows a
discipline by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from linklab.schema.rows import Table

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Discipline(Generic[S]):
    """Defines a queue discipline of the kernel for the queue of a link.

    `name` is its name in scenarios, `kind` its name in the kernel. `table` has its own keys, all
    with defaults. `options` makes its netlink attributes (TCA_OPTIONS) from the settings and the
    queue size in bytes. `counters` reads its own counters from the kernel's struct (TCA_XSTATS).
    They have the same names in `queues.jsonl`.
    """

    name: str
    kind: str
    table: Table[S]
    options: Callable[[S, int], bytes]
    counters: Callable[[memoryview], dict[str, int]] | None = None


AnyDiscipline = Discipline[Any]
