"""What can go wrong with links, and workloads to try it on: for tests and the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linklab.core.algorithms import TABLE
from linklab.runs import clients


@dataclass(frozen=True)
class Fault:
    """`events` of a scenario, and the longest that a file of `SIZE_MB` may take then by an algorithm
    that leaves no link without work, in s."""

    events: tuple[str, ...]
    longest_s: float


LONGEST_S = 120.0
"""Nothing takes that long that goes on over the better link: the least that is left is 2 Mbit/s, for
10 MB 42 s."""

SIZE_MB = 20
"""1.3 s of both links, 80 and 50 Mbit/s, without a fault; 3.4 s of LTE alone."""

LINK_FAULTS = {
    "gone-for-a-while": Fault(
        ("at: 400 ms, link: wifi, carrier: down", "at: 2 s, link: wifi, carrier: up"), 2.7
    ),
    "gone-for-good": Fault(("at: 400 ms, link: wifi, carrier: down",), 3.2),
    "next-to-nothing": Fault(("at: 400 ms, link: wifi, down: 10 kbit/s, up: 10 kbit/s",), 3.2),
    "slow": Fault(("at: 400 ms, link: wifi, down: 1 Mbit/s, up: 1 Mbit/s",), 3.2),
    "lossy": Fault(("at: 400 ms, link: wifi, loss: 30 %",), 3.2),
    "both-slow": Fault(
        ("at: 400 ms, link: wifi, down: 4 Mbit/s", "at: 400 ms, link: lte, down: 2 Mbit/s"), 24.5
    ),
    "both-gone": Fault(
        (
            "at: 400 ms, link: wifi, carrier: down",
            "at: 400 ms, link: lte, carrier: down",
            "at: 4 s, link: lte, carrier: up",
        ),
        7.6,
    ),
    "in-turns": Fault(
        (
            "at: 200 ms, link: wifi, carrier: down",
            "at: 700 ms, link: wifi, carrier: up",
            "at: 700 ms, link: lte, carrier: down",
            "at: 1200 ms, link: lte, carrier: up",
        ),
        2.9,
    ),
}


def events(fault: Fault) -> str:
    """A scenario's lines."""
    return "events:\n" + "".join(f"  - {{{event}}}\n" for event in fault.events)


@dataclass(frozen=True)
class Program:
    """What is done with a payload: its size, and a scenario's `workload`, "" for a download. Where
    it is not `sure`, links that fail may end it with an error."""

    size: str
    workload: str = ""
    sure: bool = True


PROGRAMS = {
    "file": Program("10 MB"),
    "player": Program("6 MB", "player: {rate: 16 Mbit/s, start: 400 kB, low: 400 kB, high: 2 MB}"),
    "segments": Program(
        "6 MB",
        "player: {rate: 16 Mbit/s, start: 400 kB, low: 400 kB, high: 2 MB, segment_length: 500 ms}",
    ),
    "page": Program("4 MB", "page: {}"),
    # A message on a link that dies may have been acted on: a proxy must not send it again (RFC 9110,
    # 9.2.2), and says 502.
    "rounds": Program("3 MB", "rounds: {request: 20 kB, answer: 100 kB, think: 50 ms}", sure=False),
    "paced": Program("4 MB", "paced: {rate: 12 Mbit/s, every: 250 ms}"),
    "upload": Program("6 MB", "upload: {}"),
}
"""Each goes on for some seconds, so that it meets every fault."""

SEVERAL = [one for one in TABLE if not one.one_link]

RESCUED = tuple(one.name if one.rescue else f"{one.name}-rescue" for one in SEVERAL)
"""All algorithms for several links with multilink's rescue, as people use them."""

SURE = RESCUED
"""Who has to bring every workload to its end, in time."""

MULTIPATH = (
    "mptcp",
    "mptcp-lte",
    "mptcp-backup",
    "mptcp-single-path",
    "mptcp-mdp",
    "emptcp-kernel",
)
"""Multipath TCP of the kernel."""

HELPED = ("offloading-ack", "aggregating-ack", "freeze")
"""curl over Wi-Fi alone, whose TCP acknowledges otherwise (super-aggregation): with LTE's help, or
less often."""

SUPER_AGGREGATION = (*HELPED, "loss-fetching")
"""With what fetches over LTE what Wi-Fi loses: a program of the lab's."""

ARIA2 = ("aria2-2", "aria2-8", "aria2-16")

UNSURE = (*(one.name for one in SEVERAL if not one.rescue), *MULTIPATH, *SUPER_AGGREGATION, *ARIA2)
"""As published, where nobody makes up for a failure; Multipath TCP, whose mainline may wait for a
subflow that never joined, or for minutes for what is on its way over a link of 10 kbit/s; TCP over
Wi-Fi, which is lost where that is; and aria2, which tries each link a few times and then no more.
They may fail, and then say so, or take their time."""


def able(names: Sequence[str], program: str) -> list[str]:
    """Those that can do what the program does, for scenarios with an energy model."""
    player = PROGRAMS[program].workload.startswith("player")
    name = "player" if player else program
    return [
        one
        for one in names
        if name in clients.client_of(one).commands
        and (player or "playback-rate" not in clients.client_of(one).inputs)
    ]


def text(name: str, program: Program, fault: Fault) -> str:
    """A scenario of the program over links that fail so."""
    workload = f"workload: {{{program.workload}}}\n" if program.workload else ""
    return (
        f"name: {name}\npayload: {{size: {program.size}}}\nlinks:\n"
        "  wifi: {down: 40 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, queue: 500 kB}\n"
        "  lte: {down: 20 Mbit/s, up: 10 Mbit/s, rtt: 30 ms, queue: 500 kB, rrc: {}}\n"
        f"energy: galaxy-s3\n{workload}{events(fault)}"
    )
