"""Computes a fingerprint of all that figures depend on, except the client under test.

A baseline holds for one fingerprint. With another one it must be made again, because a difference
would say nothing about the client. In virtual time computing takes no time, and the guest has its
own kernel, clock, random numbers and userland. So the host's kernel, processor, load and packages
do not change a figure. These do:

- the guest's kernel: TCP, the queueing disciplines, timers;
- the guest's image with its programs: H2O, OpenSSL, Python, Mininet, curl;
- the release series of Go, whose runtime and HTTP/2 library are in multilink;
- the scenarios, with their files and payloads;
- their energy models, if a client decides by one.

multilink and linklab are left out, because they are under test.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from linklab.energy import library, model
from linklab.places.guest import image, kernel
from linklab.places.versions import versions
from linklab.regression.suite import Planned, Suite
from linklab.runs import run_energy
from linklab.runs.clients import client_of
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.named_files import with_files


@dataclass(frozen=True)
class Fingerprint:
    """The versions of programs, and by scenario the hash of its content and of its energy model.

    The energy model only counts if a client decides by it.
    """

    programs: dict[str, str]
    scenarios: dict[str, str]
    energy_models: dict[str, str] = field(default_factory=dict)


def taken(suite: Suite) -> Fingerprint:
    """Takes the fingerprint of this linklab and the suite's scenarios.

    Raises ScenarioError for an energy model that is missing or lacks a link kind.
    """
    programs = _programs({one.entrant.name for one in suite.planned if one.entrant.command is None})
    scenarios = {one.name: of_scenario(one) for one in suite.scenarios}
    deciding = {one.scenario.name: one.scenario for one in suite.planned if _needs_energy(one)}
    models = {name: run_energy.model_for(one) for name, one in deciding.items()}
    energy = {name: _of_energy_model(text) for name, text in models.items() if text is not None}
    return Fingerprint(programs, scenarios, energy)


def of_run(scenario: Scenario, client: str | None) -> Fingerprint:
    """Takes the fingerprint of this linklab and one scenario. `client` is None for a user's
    program."""
    names = set() if client is None else {client}
    energy = {}
    if client is not None and client_of(client).needs_energy:
        text = run_energy.model_for(scenario)
        energy = {} if text is None else {scenario.name: _of_energy_model(text)}
    return Fingerprint(_programs(names), {scenario.name: of_scenario(scenario)}, energy)


def _programs(clients: Collection[str]) -> dict[str, str]:
    """Returns the versions of the guest's programs, and of Go if a client is multilink."""
    found = {"guest image": image.path("guest").name, "guest kernel": kernel.key()}
    if any(client_of(name).program is None for name in clients):
        found["Go"] = _go(versions()["multilink"])
    return found


def of_scenario(scenario: Scenario) -> str:
    """Returns a hash of a scenario's links (with traces and distributions), payload and clients.

    Titles and descriptions do not count.
    """
    by_content = with_files(scenario, lambda _, file: Path(_sha256(file.read_bytes())))
    plain = replace(by_content, title="", description="", source="", energy=None)
    return _sha256(to_yaml(plain).encode())[:16]


def _needs_energy(planned: Planned) -> bool:
    entrant = planned.entrant
    return entrant.command is None and client_of(entrant.name).needs_energy


def _of_energy_model(text: str) -> str:
    """Returns a hash of a model's values. Title, source and description do not count."""
    plain = replace(library.parse(text), name="", device="", source="", description="")
    return _sha256(model.to_yaml(plain).encode())[:16]


class Hashes:
    """Caches `of_scenario` for scenarios that many runs share."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Scenario, str]] = {}

    def of(self, scenario: Scenario) -> str:
        """Returns the scenario's hash."""
        if id(scenario) not in self._known:
            self._known[id(scenario)] = (scenario, of_scenario(scenario))
        return self._known[id(scenario)][1]


def differences(baseline: Fingerprint, now: Fingerprint) -> list[str]:
    """Lists in words what is different now; empty if the baseline holds. Pure."""
    return [
        *_differing("", baseline.programs, now.programs),
        *_differing("scenario ", baseline.scenarios, now.scenarios),
        *_differing("energy model of ", baseline.energy_models, now.energy_models),
    ]


def _differing(what: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{what}{name}: {then.get(name, 'none')} then, {now.get(name, 'none')} now"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]


def _go(version: str) -> str:
    """Returns the series of the Go version in `multilink version`, such as 1.26.

    Patch releases only bring fixes: 1.26.7, 1.26.8 and 1.26.11 gave the same nanoseconds.
    """
    found = re.search(r"go\d+\.\d+", version)
    return found[0] if found else "unknown"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
