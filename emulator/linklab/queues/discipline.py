"""What a queue discipline is to everybody else: names, keys, netlink options, counters. Pure.

One value of `Discipline` in each discipline's file says all of it; `registry.py` lists them. Nothing
else knows a discipline by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from linklab.schema.rows import Table

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Discipline(Generic[S]):
    """A queue discipline of the kernel that holds the queue of a link.

    `name` is its name in scenarios, `kind` its name in the kernel. `table` has its own keys, which
    all have defaults. `options` makes its netlink attributes (TCA_OPTIONS) from the settings and the
    size of the queue in bytes. `counters` reads what only this discipline counts from the kernel's
    struct for it (TCA_XSTATS). They stand in `queues.jsonl` under the names that it gives them.
    """

    name: str
    kind: str
    table: Table[S]
    options: Callable[[S, int], bytes]
    counters: Callable[[memoryview], dict[str, int]] | None = None


AnyDiscipline = Discipline[Any]
