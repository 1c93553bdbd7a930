"""What a client under test is: its commands, and what it needs of the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from linklab.lab.multipath.path_use import PathUse
from linklab.runs.clients.preparations import Preparation
from linklab.runs.clients.task import Task

Command = Callable[[Task], list[str]]
"""Makes the words of a command for a task."""


@dataclass(frozen=True)
class PeerProgram:
    """A program that is not ours: its Debian package, and the name of what is executed."""

    package: str
    executable: str


@dataclass(frozen=True)
class ClientUnderTest:
    """One entry of a comparison.

    `commands` has a command for each workload that the client can do, by the workload's name.
    `program` is the peer's program, None where the client is ours. `inputs` are the flags of
    multilink without which it cannot decide. It decides only between links of `kinds`, if there
    are any. With `multipath` client and server hosts speak Multipath TCP, and use the links so.

    `prepare` changes the lab for the time of the run. With `plain_http` the server answers without
    TLS, too.
    """

    name: str
    commands: Mapping[str, Command]
    program: PeerProgram | None = None
    multipath: PathUse | None = None
    prepare: Preparation | None = None
    plain_http: bool = False
    inputs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def is_peer(self) -> bool:
        """Whether it is a program that is not ours, and uses links as TCP or the kernel does."""
        usual = self.multipath in (None, PathUse()) and not self.changes_tcp
        return self.program is not None and usual

    @property
    def changes_tcp(self) -> bool:
        """Whether a link is used otherwise than TCP alone uses it."""
        return self.prepare is not None or self.plain_http

    @property
    def needs_energy(self) -> bool:
        """Whether it decides by an energy model."""
        by_multipath = self.multipath is not None and self.multipath.needs_energy
        return by_multipath or "energy-model" in self.inputs

    def command(self, task: Task) -> list[str]:
        """What it runs. Raises KeyError for a workload that it cannot do."""
        return self.commands[task.scenario.workload.name](task)


@dataclass(frozen=True)
class ClientFamily:
    """The clients that one file of this folder brings.

    Those of `on_all` use all links of a scenario. `on_one` makes a client of one link. Its key and
    the link's name, with a minus between, are the client's name.
    """

    on_all: tuple[ClientUnderTest, ...] = ()
    on_one: Mapping[str, Callable[[str], ClientUnderTest]] = field(default_factory=dict)
