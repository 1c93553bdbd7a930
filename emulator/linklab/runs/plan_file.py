"""Reads what the files of suites and campaigns have in common: clients, scenarios and seeds.

The handbook has their keys (reference/suite-and-campaign-files.md). Any mistake raises one
ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import UNSET

from linklab.core.placeholders import filled
from linklab.lab.network.services import HTTPS_PORT, OwnServer, parse_port, parse_restart
from linklab.runs import clients
from linklab.runs.job import words
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario, file_of, find
from linklab.scenario.name import FORM
from linklab.scenario.workload_file import JOINED
from linklab.schema import document
from linklab.schema.mapping import Keys, Mapping, integer, within

MOST_RUNS: Final = 100_000
"""More runs than this are a mistake, and would take months."""

SHARED: Final = ("exec", "server")
"""The keys that all such files may have."""

_EXEC = Keys(("name", "command"), ("server",))
_SERVER = Keys(("command",), ("port", "restarts"))

_seed = within(integer, 0, 2**63 - 1, "0 to 2^63-1")


@dataclass(frozen=True, slots=True)
class Entrant:
    """Holds a client, by its name or as a user's program, and its server, if that is not H2O. The
    guest shows the user's programs what lies `beside` the file."""

    name: str
    command: tuple[str, ...] | None = None
    server: OwnServer | None = None
    beside: str | None = None

    def request(self, scenario: Scenario, seed: int, shift_s: float = 0.0) -> RunRequest:
        """Returns the request of a run with this client."""
        own = self.command is not None
        return RunRequest(
            scenario,
            None if own else self.name,
            seed,
            command=self.command,
            shift_s=shift_s,
            name=self.name if own else None,
            server=self.server,
            beside=self.beside,
        )


class PlanFile:
    """Reads the parts that suites and campaigns share: `root`, `name` and programs.

    `place` is the placeholder for the file's directory in commands: `suite` or `campaign`.
    """

    def __init__(self, text: str, path: Path, keys: Keys, place: str) -> None:
        """Parses the text. `path` is its file. Raises ScenarioError."""
        shown = str(path)
        self.path = path
        self.root = Mapping(shown, document.compose(text, shown, ", ".join(keys.needed)), "", keys)
        self.name = self.root.get("name", name)
        if self.name != path.stem:
            stem = f"must be the file's name without .yaml, {path.stem!r}"
            self.root.fail("name", f"{self.name!r} {stem}")
        self._place = place
        self._server = self._own_server(self.root)
        self._beside = str(path.resolve().parent)
        self._programs: dict[str, Entrant] = {}
        for one in self.root.items("exec", _EXEC):
            own = one.get("name", name)
            if clients.is_taken(own) or own in self._programs:
                one.fail("name", f"{own!r} is taken")
            server = self._own_server(one) or self._server
            self._programs[own] = Entrant(own, one.get("command", self.words), server, self._beside)

    def _own_server(self, mapping: Mapping) -> OwnServer | None:
        """Returns the mapping's `server`, None if it has none."""
        if not mapping.has("server"):
            return None
        server = mapping.sub("server", _SERVER)
        return OwnServer(
            server.get("command", self.words),
            server.get_or("port", parse_port, HTTPS_PORT),
            server.get("restarts", parse_restart) if server.has("restarts") else UNSET,
        )

    def words(self, text: str) -> tuple[str, ...]:
        """Returns a command's words with the file's directory filled in. Raises ValueError."""
        here = {self._place: self.path.resolve().parent}
        return tuple(filled(word, here) for word in words(text))

    def entrants(self, mapping: Mapping, scenarios: Sequence[Scenario]) -> list[Entrant]:
        """Returns the mapping's `algorithms`: clients that fit all scenarios, by name or alias, and
        programs of the file."""
        known = clients.known_to(scenarios, self._programs)

        def fitting(text: str) -> str:
            found = known(text)
            for one in scenarios if found not in self._programs else ():
                unfit = clients.misfit(found, one, has_energy=one.energy is not None)
                if unfit is not None:
                    raise ValueError(unfit)
            return found

        names = mapping.each("algorithms", fitting)
        return [
            self._programs.get(one, Entrant(one, server=self._server, beside=self._beside))
            for one in names
        ]

    def scenario(self, text: str) -> Scenario:
        """Returns a scenario by name, or from a file beside this one. Raises ScenarioError."""
        return find(str(self.path.parent / text) if _is_path(text) else text)

    def scenario_file(self, text: str) -> Path:
        """Returns the file that `scenario` reads. Raises ValueError for a scenario that is made of
        two files."""
        if JOINED in text:
            raise ValueError(f"{text!r} with its workload is no file; allowed: one without")
        return self.path.parent / text if _is_path(text) else file_of(text)


def seeds(mapping: Mapping) -> list[int]:
    """Returns the mapping's `seeds`."""
    return mapping.each("seeds", _seed)


def seed(mapping: Mapping) -> int:
    """Returns the mapping's `seed`."""
    return mapping.get("seed", _seed)


def name(text: str) -> str:
    """Checks a name by the rule of scenarios' names. Raises ValueError."""
    if not FORM.fullmatch(text):
        raise ValueError(f"{text!r} is no name; allowed: a-z, 0-9 and '-', at most 64")
    return text


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".yaml", ".yml"))
