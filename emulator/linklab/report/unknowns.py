"""Lists what a publication leaves open, and the settings that try its values.

An *unknown* has values that it may have as well as the scenarios' own. A *setting* gives some unknowns
such a value. The settings are the scenarios as they are, each value alone, and the rows of a cyclic Latin
square: in each row all unknowns have another value than ours, and over all rows each of their values occurs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from yaml.nodes import Node

from linklab.energy.fitted_to import FittedTo
from linklab.scenario import Scenario, ScenarioError
from linklab.scenario.changing import changed

OURS: Final = "ours"
"""The setting in which no unknown has another value than in the scenarios."""


@dataclass(frozen=True, slots=True)
class Value:
    """Holds one value of an unknown: what it changes in the scenarios, and where the file says so.
    `only` names the scenarios that it changes, empty for all that have its keys."""

    name: str
    changes: Mapping[str, Node] = field(hash=False)
    only: tuple[str, ...] = ()
    place: str = ""

    def of(self, scenario: Scenario, name: str) -> Scenario:
        """Returns the scenario of a name with this value. Raises ScenarioError."""
        if self.only and name not in self.only:
            return scenario
        try:
            return changed(scenario, self.changes)
        except ScenarioError as error:
            raise ScenarioError(f"{self.place}: in {error}") from None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Holds what a publication leaves open, in words, and `why` it matters. `fitted_to` are the figures
    that our value was fitted to. `moves` are those that it can move within `range`, if our value was
    chosen after looking."""

    what: str
    fitted_to: tuple[FittedTo, ...] = ()
    range: str = ""
    moves: tuple[FittedTo, ...] = ()
    why: str = ""
    values: tuple[Value, ...] = ()

    def covers(self, metric: str, link: str, scenario: str, client: str) -> bool:
        """Tells whether our value was fitted to a figure."""
        return any(one.covers(metric, link, scenario, client) for one in self.fitted_to)


@dataclass(frozen=True, slots=True)
class Setting:
    """Holds the values of a setting, by the unknowns that have one."""

    name: str
    values: Mapping[str, Value] = field(hash=False)


def settings(unknowns: Iterable[Unknown]) -> list[Setting]:
    """Returns the scenarios as they are, each value alone, and the rows of the Latin square."""
    open_ = [one for one in unknowns if one.values]
    found = [Setting(OURS, {})]
    found += [Setting(value.name, {one.what: value}) for one in open_ for value in one.values]
    for row in range(max((len(one.values) for one in open_), default=0)):
        values = {
            one.what: one.values[(row + column) % len(one.values)]
            for column, one in enumerate(open_)
        }
        if len(values) > 1:
            found.append(Setting(f"together-{row + 1}", values))
    return found
