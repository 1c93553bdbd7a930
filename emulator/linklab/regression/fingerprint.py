"""What figures depend on beside the client that is tested.

A baseline holds for one of these; with another it has to be made anew, because a difference
would say nothing about the client. In virtual time computing costs nothing, and the guest has
a kernel, a clock, random numbers and a userland of its own: neither the host's kernel, processor
and load nor its packages reach a figure. What does:

- the guest's kernel: TCP, the queueing disciplines, timers;
- the guest's image, with all that runs there but multilink: H2O, OpenSSL, Python, Mininet, curl;
- the series of Go, whose runtime and HTTP/2 library are in multilink;
- the scenarios, with their traces and payloads;
- their energy models, where a contestant decides by one.

multilink and linklab themselves are not in it: they are what is tested.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from linklab.energy import library, model
from linklab.places.guest import image, kernel
from linklab.places.versions import versions
from linklab.regression.suite import Planned, Suite
from linklab.runs import run_energy
from linklab.runs.clients import client_of
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.trace_files import with_trace_files


@dataclass(frozen=True)
class Fingerprint:
    """Programs by name with their version; scenarios by name with the hash of what they say, and
    with that of the energy model by which a contestant decides there."""

    programs: dict[str, str]
    scenarios: dict[str, str]
    energy_models: dict[str, str] = field(default_factory=dict)


def taken(suite: Suite) -> Fingerprint:
    """The fingerprint of this linklab and the suite's scenarios. Raises ScenarioError for an energy
    model that is not there, or does not know a link."""
    programs = {"guest image": image.path("guest").name, "guest kernel": kernel.key()}
    names = {one.entrant.name for one in suite.planned if one.entrant.command is None}
    if any(client_of(name).program is None for name in names):
        programs["Go"] = _go(versions()["multilink"])
    scenarios = {one.name: of_scenario(one) for one in suite.scenarios}
    deciding = {one.scenario.name: one.scenario for one in suite.planned if _needs_energy(one)}
    models = {name: run_energy.model_for(one) for name, one in deciding.items()}
    energy = {name: _of_energy_model(text) for name, text in models.items() if text is not None}
    return Fingerprint(programs, scenarios, energy)


def of_scenario(scenario: Scenario) -> str:
    """A hash of all that a scenario says about links, payload and clients, its traces' content
    included; what it says to people is left out."""
    by_content = with_trace_files(scenario, lambda _, file: Path(_sha256(file.read_bytes())))
    plain = replace(by_content, title="", description="", source="", energy=None)
    return _sha256(to_yaml(plain).encode())[:16]


def _needs_energy(planned: Planned) -> bool:
    who = planned.entrant
    return who.command is None and client_of(who.name).needs_energy


def _of_energy_model(text: str) -> str:
    """A hash of a model's figures; what it says to people is left out."""
    plain = replace(library.parse(text), name="", device="", source="", description="")
    return _sha256(model.to_yaml(plain).encode())[:16]


class Hashes:
    """`of_scenario` of scenarios that many runs share, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Scenario, str]] = {}

    def of(self, scenario: Scenario) -> str:
        """The scenario's hash."""
        if id(scenario) not in self._known:
            self._known[id(scenario)] = (scenario, of_scenario(scenario))
        return self._known[id(scenario)][1]


def differences(baseline: Fingerprint, now: Fingerprint) -> list[str]:
    """What is different now, in words; nothing if the baseline holds. Pure."""
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
    """The series of the Go of `multilink version`: its last part brings fixes only (1.26.7, 1.26.8
    and 1.26.11 gave the same nanoseconds)."""
    found = re.search(r"go\d+\.\d+", version)
    return found[0] if found else "unknown"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
