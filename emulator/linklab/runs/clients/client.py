"""What a client under test is, and what it is told of its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from linklab.lab.multipath.path_use import PathUse
from linklab.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """What a client is to download in the lab, and where things are there; or to upload: the file
    `payload`.

    `wireless` has the links' signal strengths in the form of /proc/net/wireless, `energy` is the
    file of the energy model.
    """

    scenario: Scenario
    url: str
    ca_file: str
    output: str
    run_dir: str
    payload: str
    sha256: str
    multilink: str
    wireless: str
    energy: str


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

    With `offloads_acks`, LTE carries the acknowledgements of what Wi-Fi brings. With
    `aggregates_acks`, one acknowledgement stands for twelve packets. With `freezes`, the sender
    learns over LTE that Wi-Fi is silent. With `fetches_losses`, LTE brings what Wi-Fi loses; then
    the server answers without TLS, too.
    """

    name: str
    commands: Mapping[str, Command]
    program: PeerProgram | None = None
    multipath: PathUse | None = None
    offloads_acks: bool = False
    aggregates_acks: bool = False
    freezes: bool = False
    fetches_losses: bool = False
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
        return any((self.offloads_acks, self.aggregates_acks, self.freezes, self.fetches_losses))

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
