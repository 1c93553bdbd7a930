"""Changes a lab for a client under test, as context managers.

Modules of the lab are imported inside the functions. They load Mininet, which is slow and exists
only where labs run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linklab.core.link_kinds import LTE, WIFI
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.multipath.path_use import PathUse, link_of_kind
from linklab.places.guest.init import mount, unmount
from linklab.runs.clients.task import Task

if TYPE_CHECKING:
    from linklab.lab.multipath.multipath import Multipath
    from linklab.lab.multipath.path_control import Control
    from linklab.lab.network.lab import Lab
    from linklab.lab.player.player import Player
    from linklab.lab.super_aggregation.ack_offload import AckOffload
    from linklab.lab.super_aggregation.blackout_freeze import BlackoutFreeze


@dataclass(frozen=True, slots=True)
class ReadyLab:
    """Holds a lab that is built and whose player has not started."""

    lab: Lab
    player: Player
    task: Task

    @property
    def wifi(self) -> str:
        """The name of the Wi-Fi link."""
        return link_of_kind(self.task.scenario.links, WIFI)

    @property
    def lte(self) -> str:
        """The name of the LTE link."""
        return link_of_kind(self.task.scenario.links, LTE)


Preparation = Callable[[ReadyLab], AbstractContextManager[None]]


@contextlib.contextmanager
def _followed(control: AckOffload | BlackoutFreeze, player: Player) -> Iterator[None]:
    """Makes the player call `control`, and closes `control` at the end."""
    from linklab.lab.multipath import path_control  # Loads Mininet.

    with contextlib.closing(control):
        path_control.follow(control, player)
        yield


def acks_over_lte(ready: ReadyLab) -> AbstractContextManager[None]:
    """Sends the acknowledgements of Wi-Fi's connections over LTE."""
    from linklab.lab.super_aggregation.ack_offload import AckOffload  # Loads Mininet.

    control = AckOffload(ready.lab, ready.player, of=ready.wifi, over=ready.lte)
    return _followed(control, ready.player)


def silence_told_over_lte(ready: ReadyLab) -> AbstractContextManager[None]:
    """Announces Wi-Fi's outages over LTE to the senders of Wi-Fi's connections."""
    from linklab.lab.super_aggregation.blackout_freeze import BlackoutFreeze  # Loads Mininet.

    control = BlackoutFreeze(ready.lab, ready.player, of=ready.wifi, over=ready.lte)
    return _followed(control, ready.player)


@contextlib.contextmanager
def aggregated_acks(ready: ReadyLab) -> Iterator[None]:
    """Makes the client acknowledge many packets of Wi-Fi at a time."""
    from linklab.lab.super_aggregation import ack_aggregation  # Loads Mininet.

    sysfs = Path(ready.task.output).with_name("sysfs")
    sysfs.mkdir()
    # A sysfs shows the interfaces of the process that mounts it.
    with inside(ready.lab.client.node.namespace):
        mount("sysfs", str(sysfs), "sysfs")
    try:
        ack_aggregation.aggregate(ready.lab, ready.wifi, sysfs)
    finally:
        unmount(str(sysfs))
        sysfs.rmdir()
    yield


@contextlib.contextmanager
def multipath_tcp(ready: ReadyLab, use: PathUse) -> Iterator[Multipath]:
    """Makes Multipath TCP use the links as `use` says, from the first connection on."""
    from linklab.lab.multipath import path_control  # Loads Mininet.
    from linklab.lab.multipath.multipath import Multipath

    for host in (ready.lab.client, ready.lab.server):
        write_sysctls(host.node.namespace, use.sysctls)
    with contextlib.closing(Multipath(ready.lab)) as multipath:
        if use.control:
            path_control.follow(_control(ready, multipath, use), ready.player)
        else:
            first = use.first_of(ready.task.scenario.links)
            multipath.use_all(backups_of=first if use.backups else None)
        yield multipath


def _control(ready: ReadyLab, multipath: Multipath, use: PathUse) -> Control:
    """Returns the controller that chooses Multipath TCP's links while the client runs."""
    from linklab.lab.multipath import path_control  # Loads Mininet.

    lab, player, scenario = ready.lab, ready.player, ready.task.scenario
    first = use.first_of(scenario.links)
    if not use.needs_energy:
        return path_control.SinglePath(lab, multipath, player, first=first)
    for host in (lab.client, lab.server):  # A suspended subflow keeps its window.
        write_sysctls(host.node.namespace, {"net.ipv4.tcp_slow_start_after_idle": "0"})
    from linklab.runs import run_energy  # Few runs need it.

    model = run_energy.model_of(Path(ready.task.run_dir))
    assert model is not None  # `registry.misfit` has checked it.
    if use.control == "schedule":
        return path_control.ScheduleControl(lab, multipath, player, model, scenario)
    return path_control.EnergyControl(
        lab,
        multipath,
        player,
        model,
        wifi=first,
        lte=ready.lte,
        forecasts_lte=use.forecasts_lte,
    )
