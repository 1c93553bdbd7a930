"""Lists every queue discipline, one line each, and reads the scenario key that chooses one. Pure."""

from __future__ import annotations

from typing import Any, Final

from yaml.nodes import MappingNode

from linklab.queues import drop_tail
from linklab.queues.discipline import AnyDiscipline
from linklab.schema.mapping import Keys, Mapping, one_of

DISCIPLINES: Final[tuple[AnyDiscipline, ...]] = (drop_tail.DISCIPLINE,)
"""The order is the order of lists."""

DEFAULT: Final = drop_tail.DropTail()

_BY_NAME: Final = {one.name: one for one in DISCIPLINES}
_OF_SETTINGS: Final = {one.table.settings: one for one in DISCIPLINES}


def of_settings(settings: object) -> AnyDiscipline:
    """Returns the discipline of these settings. Raises KeyError for another class."""
    return _OF_SETTINGS[type(settings)]


class Choice:
    """Reads and writes a discipline's name, or a mapping from its name to its own keys."""

    allowed: Final = ", ".join(_BY_NAME) + (
        "; or a mapping from one of them to its keys, see below"
        if any(one.table.rows for one in DISCIPLINES)
        else ""
    )

    def read(self, mapping: Mapping, key: str) -> Any:
        """Reads the settings of the chosen discipline."""
        if not isinstance(mapping.values[key], MappingNode):
            return _BY_NAME[mapping.get(key, one_of(*_BY_NAME))].table.settings()
        chosen = mapping.sub(key, Keys((), tuple(_BY_NAME)))
        if len(chosen.values) != 1:
            mapping.fail(
                key, f"{len(chosen.values)} disciplines; needed: one of {', '.join(_BY_NAME)}"
            )
        (name,) = chosen.values
        return _BY_NAME[name].table.read(chosen, name)

    def write(self, settings: Any) -> Any:
        """Returns the name alone if all of its keys have their defaults."""
        discipline = of_settings(settings)
        if settings == discipline.table.settings():
            return discipline.name
        return {discipline.name: discipline.table.write(settings)}
