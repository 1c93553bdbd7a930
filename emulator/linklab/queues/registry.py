"""Lists every queue discipline, one line each, and reads the scenario key that chooses one. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from yaml.nodes import MappingNode

from linklab.core.frames import FRAME_BYTES
from linklab.queues import (
    cake,
    codel,
    drop_head,
    drop_tail,
    dualpi2,
    fq_codel,
    fq_pie,
    pie,
    red,
)
from linklab.queues.discipline import AnyDiscipline
from linklab.schema.mapping import Keys, Mapping, guess, one_of
from linklab.schema.quantities import QUEUE, choice
from linklab.schema.rows import Row

DISCIPLINES: Final[tuple[AnyDiscipline, ...]] = (
    drop_tail.DISCIPLINE,
    drop_head.DISCIPLINE,
    codel.DISCIPLINE,
    fq_codel.DISCIPLINE,
    cake.DISCIPLINE,
    pie.DISCIPLINE,
    fq_pie.DISCIPLINE,
    red.DISCIPLINE,
    dualpi2.DISCIPLINE,
)
"""The order is the order of lists."""

DEFAULT: Final = drop_tail.DropTail()

_BY_NAME: Final = {one.name: one for one in DISCIPLINES}
_OF_SETTINGS: Final = {one.table.settings: one for one in DISCIPLINES}


def of_settings(settings: object) -> AnyDiscipline:
    """Returns the discipline of these settings. Raises KeyError for another class."""
    return _OF_SETTINGS[type(settings)]


@dataclass(frozen=True, slots=True)
class Queue:
    """Holds what a scenario says of a queue: its size in bytes, None without one, and the settings
    of its discipline."""

    size_bytes: int | None = None
    discipline: Any = DEFAULT


_NAME: Final = Row(
    "discipline",
    "discipline",
    choice(*_BY_NAME),
    "which packets wait and which are dropped",
    needed=True,
)
_OWN_SIZE: Final = [one.name for one in DISCIPLINES if one.default_bytes is not None]

_SIZE: Final = Row(
    "size",
    "size_bytes",
    QUEUE,
    "how much waits at most; a discipline that counts packets takes one of any size for each "
    f"{FRAME_BYTES} B, rounded up",
    default=f"that of the kernel for {', '.join(_OWN_SIZE[:-1])} and {_OWN_SIZE[-1]}",
)


ROWS: Final = (_NAME, _SIZE)
"""The keys of every discipline."""


def _named_or_sized(text: str) -> Queue:
    if text in _BY_NAME:
        return Queue(None, _BY_NAME[text].table.settings())
    if text[:1].isalpha():
        raise ValueError(
            f"unknown value {text!r}{guess(text, _BY_NAME)}; allowed: a size such as '250 kB', or "
            f"one of {', '.join(_BY_NAME)}"
        )
    return Queue(QUEUE.parse(text))


class Choice:
    """Reads and writes a queue: a size, the name of a discipline, or a mapping with a discipline, a
    size and its own keys."""

    allowed: Final = f"{QUEUE.allowed}; or a discipline; or a mapping, see below"

    def read(self, mapping: Mapping, key: str) -> Queue:
        """Reads the size, or the settings of the chosen discipline."""
        if not isinstance(mapping.values[key], MappingNode):
            return mapping.get(key, _named_or_sized)
        names = one_of(*_BY_NAME)
        any_keys = (own for one in DISCIPLINES for own in one.table.keys.all)
        chosen = mapping.sub(key, Keys((_NAME.key,), (_SIZE.key, *dict.fromkeys(any_keys))))
        discipline = _BY_NAME[chosen.get(_NAME.key, names)]
        own = mapping.sub(key, Keys((_NAME.key,), (_SIZE.key, *discipline.table.keys.all)))
        size_bytes = _SIZE.value.read(own, _SIZE.key) if own.has(_SIZE.key) else None
        return Queue(size_bytes, discipline.table.of(own))

    def write(self, queue: Queue) -> Any:
        """Returns the size alone for the default discipline."""
        size = None if queue.size_bytes is None else QUEUE.write(queue.size_bytes)
        if queue.discipline == DEFAULT:
            return size
        discipline = of_settings(queue.discipline)
        sized = {} if size is None else {_SIZE.key: size}
        return {_NAME.key: discipline.name, **sized, **discipline.table.write(queue.discipline)}
