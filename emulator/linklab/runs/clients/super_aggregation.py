"""Defines Super-aggregation's mechanisms as clients: curl over Wi-Fi, whose TCP connection LTE
helps."""

from __future__ import annotations

from functools import partial
from typing import Final

from linklab.core.link_kinds import LTE, WIFI
from linklab.lab.multipath.path_use import link_of_kind
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths
from linklab.runs.clients import curl, preparations
from linklab.runs.clients.client import ClientFamily, ClientUnderTest
from linklab.runs.clients.task import Task
from linklab.scenario.workload import WHOLE_FILE


def _wifi_address(task: Task) -> str:
    """Returns Wi-Fi's address. curl bound to the address may also send over LTE. Bound to the
    device it could not."""
    links = task.scenario.links
    return link_paths(links)[link_of_kind(links, WIFI)].client.address


def _loss_fetching(task: Task, *, helps: bool = False) -> list[str]:
    """Uses plain HTTP: bytes that TLS encrypts for one connection are useless on another."""
    from linklab.lab.super_aggregation import loss_fetching  # Few runs need it.

    url = f"http://{SERVER_ADDRESS}/{task.url.rpartition('/')[2]}"
    lte = task.scenario.links[link_of_kind(task.scenario.links, LTE)].device
    return loss_fetching.command(
        url, _wifi_address(task), lte, task.output, task.sha256, helps=helps
    )


_OVER_WIFI = {WHOLE_FILE: curl.download_by(_wifi_address)}

FAMILY: Final = ClientFamily(
    (
        ClientUnderTest(
            "offloading-ack", _OVER_WIFI, program=curl.PROGRAM, prepare=preparations.acks_over_lte
        ),
        ClientUnderTest(
            "aggregating-ack",
            _OVER_WIFI,
            program=curl.PROGRAM,
            prepare=preparations.aggregated_acks,
        ),
        ClientUnderTest(
            "freeze", _OVER_WIFI, program=curl.PROGRAM, prepare=preparations.silence_told_over_lte
        ),
        ClientUnderTest("loss-fetching", {WHOLE_FILE: _loss_fetching}, plain_http=True),
        ClientUnderTest(
            "super-aggregation", {WHOLE_FILE: partial(_loss_fetching, helps=True)}, plain_http=True
        ),
    )
)
