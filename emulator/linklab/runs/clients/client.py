"""Defines what a client under test is: its commands, and what it needs of the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from linklab.lab.multipath.path_use import PathUse
from linklab.runs.clients.preparations import Preparation
from linklab.runs.clients.task import Task

Command = Callable[[Task], list[str]]
"""Returns the command's words for a task."""


@dataclass(frozen=True)
class PeerProgram:
    """Holds the name of a foreign program's executable and its Debian package. Without a package
    `make peers-quic` compiles it."""

    executable: str
    package: str | None = None


@dataclass(frozen=True)
class ClientUnderTest:
    """Holds one entry of a comparison.

    `commands` has a command for each workload that the client can do, by the workload's name.
    `program` is the peer's program, None for our own clients. `inputs` are the multilink flags that
    the client needs to decide. If `kinds` is not empty, the client only decides between links of
    these kinds. With `multipath`, the client and server hosts speak Multipath TCP and use links as
    it says. `prepare` changes the lab for the time of the run. With `plain_http` the server also
    answers without TLS. A client that is `only_by_name` belongs to no group. `server` is the command
    of a server that runs in H2O's place, with placeholders (`environment.for_server`, `peers`).
    """

    name: str
    commands: Mapping[str, Command]
    program: PeerProgram | None = None
    multipath: PathUse | None = None
    prepare: Preparation | None = None
    plain_http: bool = False
    inputs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    only_by_name: bool = False
    server: tuple[str, ...] = ()

    @property
    def is_peer(self) -> bool:
        """Whether the group `peers` has it: a foreign program that uses links as plain TCP or the
        kernel does."""
        usual = self.multipath in (None, PathUse()) and not self.changes_tcp
        return self.program is not None and usual and not self.only_by_name

    @property
    def changes_tcp(self) -> bool:
        """Whether it changes how TCP uses a link."""
        return self.prepare is not None or self.plain_http

    @property
    def changes_lab(self) -> bool:
        """Whether it changes or controls the lab for the time of its run."""
        is_controlled = bool(self.multipath and self.multipath.control)
        return self.prepare is not None or is_controlled or bool(self.server)

    @property
    def is_compiled(self) -> bool:
        """Whether its program is one that `make peers-quic` compiles."""
        return self.program is not None and self.program.package is None

    @property
    def needs_energy(self) -> bool:
        """Whether it decides by an energy model."""
        by_multipath = self.multipath is not None and self.multipath.needs_energy
        return by_multipath or "energy-model" in self.inputs

    def command(self, task: Task) -> list[str]:
        """Returns the command for a task. Raises KeyError for a workload that the client cannot do."""
        return self.commands[task.scenario.workload.name](task)


@dataclass(frozen=True)
class ClientFamily:
    """Holds the clients that one file of this folder defines.

    The clients in `on_all` use all links of a scenario. A function in `on_one` makes a client of
    one link. The client's name is the function's key, a minus and the link's name.
    """

    on_all: tuple[ClientUnderTest, ...] = ()
    on_one: Mapping[str, Callable[[str], ClientUnderTest]] = field(default_factory=dict)
