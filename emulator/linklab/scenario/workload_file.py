"""Reads workload files, which combine with any scenario: `SCENARIO+WORKLOAD`.

The file's keys (* means required) are `name*`, `title`, `description`, `source` and `payload` as in a
scenario, and `workload*`. They replace the scenario's; the links stay.
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
"""The separator between a scenario's name and a workload's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFile:
    """A workload with its title and description, and with its payload if it has one."""

    name: str
    title: str = ""
    description: str = ""
    source: str = ""
    payload: Payload | None = None
    workload: Workload

    def over(self, scenario: Scenario) -> Scenario:
        """Returns this workload over a scenario's links."""
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


def parse(text: str, file_name: str, stem: str) -> WorkloadFile:
    """Reads a workload from YAML text.

    `file_name` names the file in errors. The workload's name must equal `stem`. Raises
    ScenarioError.
    """
    root = document.compose(text, file_name, ", ".join(TABLE.keys.needed))
    top = Mapping(file_name, root, "", TABLE.keys)
    found = TABLE.of(top)
    if found.name != stem:
        top.fail("name", f"{found.name!r} differs from the file's name; allowed: {stem!r}")
    if found.payload is not None:
        check_size(top, found.payload, found.workload)
    return found
