"""Workloads in files of their own, for any scenario: `SCENARIO+WORKLOAD`. Pure but for reading them.

The file (keys marked * are needed): `name*`, `title`, `description`, `source` and `payload` as in a
scenario, and `workload*`. What it says takes the place of what the scenario says; the links stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from linklab.scenario import payload, workload
from linklab.scenario.name import NAME
from linklab.scenario.payload import Payload
from linklab.scenario.reading import check_size
from linklab.scenario.settings import Scenario
from linklab.scenario.workload import Workload
from linklab.schema import document
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import TEXT
from linklab.schema.rows import Row, Table

JOINED: Final = "+"
"""What stands between a scenario's name and a workload's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFile:
    """A workload with its words and, if it brings one, its payload."""

    name: str
    title: str = ""
    description: str = ""
    source: str = ""
    payload: Payload | None = None
    workload: Workload

    def over(self, scenario: Scenario) -> Scenario:
        """This workload over a scenario's links."""
        return replace(
            scenario,
            name=f"{scenario.name}{JOINED}{self.name}",
            title="; ".join(filter(None, (self.title, scenario.title))),
            description=self.description or scenario.description,
            source="; ".join(dict.fromkeys(filter(None, (scenario.source, self.source)))),
            payload=self.payload or scenario.payload,
            workload=self.workload,
        )


TABLE: Final = Table(
    WorkloadFile,
    (
        Row("name", "name", NAME, "the file's name without .yaml", needed=True),
        Row("title", "title", TEXT, "one line", unset=""),
        Row("description", "description", TEXT, "what it is about", unset=""),
        Row("source", "source", TEXT, "where the figures come from", unset=""),
        Row("payload", "payload", payload.TABLE, "in place of the scenario's", unset=None),
        Row("workload", "workload", workload.TABLE, "what is done with it", needed=True),
    ),
)


def parse(text: str, shown: str, stem: str) -> WorkloadFile:
    """The workload in YAML text. `shown` names the file in errors, `stem` must be its name. Raises
    ScenarioError."""
    root = document.compose(text, shown, ", ".join(TABLE.keys.needed))
    top = Mapping(shown, root, "", TABLE.keys)
    found = TABLE.of(top)
    if found.name != stem:
        top.fail("name", f"{found.name!r} differs from the file's name; allowed: {stem!r}")
    if found.payload is not None:
        check_size(top, found.payload, found.workload)
    return found
