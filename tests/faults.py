"""Defines faults of links, and workloads to try them with, with which tests try them."""

from collections.abc import Sequence
from dataclasses import dataclass

from linklab.core.algorithms import TABLE
from linklab.runs import clients


@dataclass(frozen=True)
class Fault:
    """Holds a scenario's `events`, and the most seconds that a file of `SIZE_MB` may take with an
    algorithm that keeps all links busy."""

    events: tuple[str, ...]
    longest_s: float


LONGEST_S = 120.0
"""A client that goes on over the better link takes less. At the least, 2 Mbit/s are left, and 10 MB
take 42 s."""

SIZE_MB = 20
"""This takes both links, 80 and 50 Mbit/s, 1.3 s without a fault, and LTE alone 3.4 s."""

LINK_FAULTS = {
    "gone-for-a-while": Fault(
        ("at: 400 ms, link: wifi, carrier: down", "at: 2 s, link: wifi, carrier: up"), 2.7
    ),
    "gone-for-good": Fault(("at: 400 ms, link: wifi, carrier: down",), 3.2),
    "next-to-nothing": Fault(("at: 400 ms, link: wifi, down: 10 kbit/s, up: 10 kbit/s",), 3.2),
    "slow": Fault(("at: 400 ms, link: wifi, down: 1 Mbit/s, up: 1 Mbit/s",), 3.3),
    "lossy": Fault(("at: 400 ms, link: wifi, loss: 30 %",), 3.3),
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
    """Returns the fault's lines of a scenario."""
    return "events:\n" + "".join(f"  - {{{event}}}\n" for event in fault.events)


@dataclass(frozen=True)
class Program:
    """Describes a payload's use: its size, and a scenario's `workload`, "" for a download. If it is
    not `sure`, failing links may end it with an error."""

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
    # The server may have handled a message that was on a dying link. A proxy must not send it again
    # (RFC 9110, 9.2.2), and answers 502.
    "rounds": Program("3 MB", "rounds: {request: 20 kB, answer: 100 kB, think: 50 ms}", sure=False),
    "paced": Program("4 MB", "paced: {rate: 12 Mbit/s, every: 250 ms}"),
    "upload": Program("6 MB", "upload: {}"),
}
"""Each takes some seconds, so that it meets every fault."""

SEVERAL = [one for one in TABLE if not one.one_link]

SURE = tuple(one.name for one in SEVERAL if one.rescue)
"""The clients that have to complete every workload in time."""


def able(names: Sequence[str], program: str) -> list[str]:
    """Returns the clients that can do the program's workload, in scenarios with an energy model."""
    player = PROGRAMS[program].workload.startswith("player")
    name = "player" if player else program
    return [
        one
        for one in names
        if name in clients.client_of(one).commands
        and (player or "playback-rate" not in clients.client_of(one).inputs)
    ]


def text(name: str, program: Program, fault: Fault) -> str:
    """Returns a scenario of the program over links with this fault."""
    workload = f"workload: {{{program.workload}}}\n" if program.workload else ""
    return (
        f"name: {name}\npayload: {{size: {program.size}}}\nlinks:\n"
        "  wifi: {down: 40 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, queue: 500 kB}\n"
        "  lte: {down: 20 Mbit/s, up: 10 Mbit/s, rtt: 30 ms, queue: 500 kB, rrc: {}}\n"
        f"energy: galaxy-s3\n{workload}{events(fault)}"
    )
