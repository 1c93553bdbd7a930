"""The manifest of a run directory (`run.json`): what is to be run, where and with what.

Written before the lab starts and read by the process that runs the lab, on the
host or in the guest, so that both do the same on the same files.
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

FORMAT: Final = 1

FILE: Final = "run.json"

SCENARIO_FILE: Final = "scenario.yaml"
"""The scenario as run, beside the manifest."""

TRACES: Final = "traces"
"""Where the scenario's traces are."""

ENERGY_FILE: Final = "energy.yaml"
"""The energy model, where there is one."""

NOBODY: Final = "nobody"
"""Who a run is named after in which the links are there for others."""

_WITH_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)[^/?#\s]*@", re.IGNORECASE)


def require_no_credentials(command: Sequence[str]) -> None:
    """ValueError where a user's command holds a URL with a user or password: a manifest is kept,
    copied and shown. The lab's server asks for none."""
    if any(_WITH_CREDENTIALS.search(word) for word in command):
        raise ValueError(
            "a URL in the command holds a user or password, which run.json would keep; allowed: "
            "a URL without, and a file from which the program reads them"
        )


def without_credentials(command: Sequence[str]) -> list[str]:
    """The words of a command, its URLs without user and password, to be shown."""
    return [_WITH_CREDENTIALS.sub(r"\1", word) for word in command]


def words(text: str) -> tuple[str, ...]:
    """The words of a user's command as a shell would read them. ValueError."""
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from error
    if not found:
        raise ValueError("an empty command; allowed: a program and its arguments")
    require_no_credentials(found)
    return found


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run. Paths are absolute on the host.

    `contestant` is the name of an algorithm or peer, or None where `command` holds
    a program of the user's (`linklab exec`), which may have a `name`. `server` is a program of
    the user's that serves in place of H2O; both get his `environment`; `terminal` is the command's, if it has one; `outside` is
    what it reaches beyond the lab. `shift_s` delays the client's start. Packets of the links in
    `pcap` are recorded, and with `tls_keys` what decrypts them. A `live` run is watched, not
    measured: it goes on where the emulator comes late.
    """

    format: Literal[1] = FORMAT
    scenario: Name
    contestant: Name | None
    name: Name | None = None
    command: list[Words] | None
    server: OwnServer | None = None
    environment: dict[str, str] = {}
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
    started_at: Name
    payload: Words
    payload_sha256: Name
    multilink: Words
    certificate_authority: Words
    certificate: Words
    key: Words
    versions: ByName[Words]

    @property
    def title(self) -> str:
        """Who downloaded: the contestant, or what the user's program is called."""
        return title(self.contestant, self.name, self.command)


def title(contestant: str | None, name: str | None, command: Sequence[str] | None) -> str:
    """What a run's contestant, or the user's program that takes its place, is called."""
    return contestant or name or Path((command or ["exec"])[0]).name


def write(job: Job, run_dir: Path) -> None:
    """Writes the manifest."""
    text = msgspec.json.format(msgspec.json.encode(job), indent=2)
    plain_file.write(run_dir / FILE, text + b"\n")


def read(run_dir: Path) -> Job:
    """Reads the manifest. Raises OSError, RecordError if it is not one."""
    return records.document(run_dir / FILE, Job)


def scenario_of(run_dir: Path) -> Scenario:
    """The scenario as run; FileNotFoundError or ScenarioError if there is none."""
    return load(run_dir / SCENARIO_FILE, any_name=True)
