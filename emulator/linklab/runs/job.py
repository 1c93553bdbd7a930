"""Reads and writes the manifest of a run directory (`run.json`): what runs where, and with what.

The manifest is written before the lab starts. The process that runs the lab reads it, on the host
or in the guest, so both execute the same run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from linklab.core import plain_file, records
from linklab.core.bounded import ByName, Few, Name, Seed, Shift, Words
from linklab.lab.network.services import Outside, OwnServer
from linklab.lab.programs.terminal import Terminal
from linklab.scenario import Scenario, load
from linklab.scenario.clients import TESTED

FORMAT: Final = 1

FILE: Final = "run.json"

SCENARIO_FILE: Final = "scenario.yaml"
"""The scenario as run, beside the manifest."""

TRACES: Final = "traces"
"""The directory of the scenario's traces and delay distributions."""

ENERGY_FILE: Final = "energy.yaml"
"""The energy model, if there is one."""

NOBODY: Final = "nobody"
"""The client's name in a run without a client, whose links serve other programs."""

_WITH_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)[^/?#\s]*@", re.IGNORECASE)


def require_no_credentials(command: Sequence[str]) -> None:
    """Raises ValueError if a user's command has a URL with a user or password. Manifests are kept,
    copied and shown. The lab's server needs no credentials."""
    if any(_WITH_CREDENTIALS.search(word) for word in command):
        raise ValueError(
            "a URL in the command holds a user or password, which run.json would keep; allowed: "
            "a URL without, and a file from which the program reads them"
        )


def without_credentials(command: Sequence[str]) -> list[str]:
    """Returns a command's words for display, without user and password in URLs."""
    return [_WITH_CREDENTIALS.sub(r"\1", word) for word in command]


def words(text: str) -> tuple[str, ...]:
    """Splits a user's command into words as a shell would. Raises ValueError."""
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from error
    if not found:
        raise ValueError("an empty command; allowed: a program and its arguments")
    require_no_credentials(found)
    return found


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Describes one run. Paths are absolute on the host.

    `client` is the name of an algorithm or peer. It is None if `command` is a user's program
    (`linklab exec`), which may have a `name`. `server` is a user's program that serves instead of
    H2O. Both get the user's `environment` and start in `directory`. `terminal` is the command's terminal, if any. `outside`
    is what the command reaches beyond the lab. `shift_s` delays the client's start. Packets of the
    links in `pcap` are recorded, with `tls_keys` also the keys to decrypt them. A `live` run is
    watched, not measured. It goes on if the emulator is late. `limit_s` is the lab's time from the
    client's start after which the run counts as hung. `peers` is the directory of the compiled peers'
    programs, if the client is one of them.
    """

    format: Literal[1] = FORMAT
    scenario: Name
    client: Name | None = msgspec.field(name="contestant")
    name: Name | None = None
    command: list[Words] | None
    server: OwnServer | None = None
    environment: dict[str, str] = {}
    directory: Words | msgspec.UnsetType = msgspec.UNSET
    terminal: Terminal | None = None
    outside: Outside | None = None
    seed: Seed
    place: Name
    clock: Name
    reason: Words
    shift_s: Shift
    pcap: Annotated[list[Name], Few] = []
    tls_keys: bool = False
    live: bool = False
    limit_s: float | msgspec.UnsetType = msgspec.UNSET
    started_at: Name
    payload: Words
    payload_sha256: Name
    multilink: Words
    peers: Words | msgspec.UnsetType = msgspec.UNSET
    certificate_authority: Words
    certificate: Words
    key: Words
    versions: ByName[Words]

    @property
    def title(self) -> str:
        """The client's name, or the name of the user's program."""
        return title(self.client, self.name, self.command)

    def of_client(self, algorithm: str) -> Job:
        """Returns the job of one of the scenario's clients, by its algorithm."""
        if algorithm == TESTED:
            return self
        return msgspec.structs.replace(self, client=algorithm, command=None, name=None)


def client_directory(number: int) -> str:
    """Returns the name of a further client's directory in the run directory. The scenario's second
    client has the number 2."""
    return f"client-{number}"


def title(client: str | None, name: str | None, command: Sequence[str] | None) -> str:
    """Returns the name of a run's client, or of the user's program in its place."""
    return client or name or Path((command or ["exec"])[0]).name


def write(job: Job, run_dir: Path) -> None:
    """Writes the manifest."""
    text = msgspec.json.format(msgspec.json.encode(job), indent=2)
    plain_file.write(run_dir / FILE, text + b"\n")


def read(run_dir: Path) -> Job:
    """Reads the manifest. Raises OSError, RecordError if it is invalid."""
    return records.document(run_dir / FILE, Job)


def scenario_of(run_dir: Path) -> Scenario:
    """Returns the scenario as run. Raises FileNotFoundError or ScenarioError."""
    return load(run_dir / SCENARIO_FILE, any_name=True)
