"""Declares options that several commands share, and reads their values."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linklab.api.errors import UsageError as UsageError
from linklab.api.settings import RUNS as RUNS
from linklab.core.limits import (
    MAX_SEED,
    MAX_SHIFT_S,
    MAX_SIDE_BY_SIDE,
    MAX_TIME_S,
    MAX_TIMEOUT_S,
    MIN_RESTART_S,
)
from linklab.core.units import parse_duration
from linklab.places.names import CLOCKS, PLACES, PROCESSORS
from linklab.realtime import address

if TYPE_CHECKING:
    from linklab.runs.reach import Reach
    from linklab.scenario import Scenario


def given(options: argparse.Namespace, *names: str) -> list[str]:
    """Lists those of the named options that are given, as users write them. Their defaults must be
    None or False."""
    return [
        f"--{name.replace('_', '-')}"
        for name in names
        if getattr(options, name) is not None and getattr(options, name) is not False
    ]


def count(most: int) -> Callable[[str], int]:
    """Returns a parser for a whole number from 1 to `most`."""

    def read(text: str) -> int:
        value = _integer(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: 1 to {most}")
        return value

    return read


def seconds(most: float, least: float = 0.0) -> Callable[[str], float]:
    """Returns a parser for seconds from `least` to `most`, as a number or as a duration such as 2s."""

    def read(text: str) -> float:
        value = math.nan
        for parse in (float, parse_duration):
            with contextlib.suppress(ValueError):
                value = parse(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no such number of seconds; allowed: {least:g} to {most:.0f}"
            )
        return value

    return read


def _seed(text: str) -> int:
    value = _integer(text)
    if not 0 <= value <= MAX_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed; allowed: 0 to 2^63-1")
    return value


def _integer(text: str) -> int:
    """Returns the integer, or -1, which no option allows."""
    try:
        return int(text)
    except ValueError:
        return -1


def _port(text: str) -> int:
    from linklab.lab.network.services import parse_port  # YAML is slow to load.

    try:
        return parse_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _proxy(text: str) -> tuple[str, int]:
    try:
        return address.parse_proxy(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_SHARED: Final[dict[str, dict[str, Any]]] = {
    "--json": {"action": "store_true", "help": "print JSON for machines"},
    "--seed": {"type": _seed, "default": 1, "help": "of everything random (default 1)"},
    "--timeout": {
        "type": seconds(MAX_TIMEOUT_S),
        "metavar": "S",
        "help": "seconds of the lab's time, such as 90 or 5min, after which a run counts as hung",
    },
    "--shift": {
        "type": seconds(MAX_SHIFT_S),
        "default": 0.0,
        "metavar": "S",
        "help": "start the client later by S seconds",
    },
    "--out": {
        "type": Path,
        "default": RUNS,
        "metavar": "DIR",
        "help": "parent of run directories (runs/)",
    },
    "--place": {
        "choices": PLACES,
        "default": "auto",
        "help": "where the lab runs; auto: in the guest, or on the host if there is no guest here",
    },
    "--clock": {
        "choices": CLOCKS,
        "default": "auto",
        "help": "auto: virtual in the guest, real on the host",
    },
    "--processor": {
        "choices": PROCESSORS,
        "help": "what executes the guest; emulated: QEMU, for the same figures on any processor; "
        "auto: this machine's own if it is x86-64 (default: LINKLAB_PROCESSOR, else auto)",
    },
    "--server": {
        "metavar": "'COMMAND'",
        "help": "your own server on the server host, in place of H2O (see `linklab exec --help`)",
    },
    "--server-restarts": {
        "type": seconds(MAX_TIME_S, MIN_RESTART_S),
        "metavar": "S",
        "help": "start your server again S seconds after each of its ends, such as 2s",
    },
    "--share": {
        "metavar": "DIR",
        "help": "show DIR of your home to your programs in the guest (repeatable)",
    },
    "--port": {
        "type": _port,
        "metavar": "N",
        "help": "port of your server, TCP or UDP (default 443)",
    },
    "--link": {
        "metavar": "NAME=LINK",
        "help": "a link in place of a scenario, such as wifi=20mbit/5mbit,30ms,1%% or lte=fast-4g "
        "(repeatable)",
    },
    "--save": {
        "type": Path,
        "metavar": "FILE.yaml",
        "help": "write the links of --link as a scenario",
    },
    "--origin": {
        "metavar": "URL",
        "help": "put your server behind the links, under its own name (repeatable; real clock)",
    },
    "--outside": {
        "action": "store_true",
        "help": "let the lab reach what this machine reaches, on the usual ports of TCP and UDP "
        "(real clock)",
    },
    "--listen-proxy": {
        "type": _proxy,
        "metavar": "[ADDRESS:]PORT",
        "help": "open an HTTP and SOCKS5 proxy over all links, on the loopback device unless ADDRESS "
        "says. The following ports are one proxy per link. PORT 0 takes free ones ",
    },
    "--pcap": {
        "metavar": "LINK",
        "help": "record the packets of a link, or of `all`, into LINK.pcap of the run directory",
    },
    "--tls-keys": {
        "action": "store_true",
        "help": "write the client's TLS keys to tls-keys.log there (SSLKEYLOGFILE)",
    },
    "--report": {
        "type": Path,
        "metavar": "FILE.html",
        "help": "also write a report of the runs",
    },
    "--energy-model": {
        "metavar": "NAME",
        "help": "energy model of `linklab energy`, or a YAML file, ",
    },
    "--kind": {
        "metavar": "LINK=KIND",
        "help": "a recorded link's kind, if neither name nor device tells",
    },
    "--jobs": {"type": count(MAX_SIDE_BY_SIDE), "metavar": "N"},
    "--parallel": {"type": count(MAX_SIDE_BY_SIDE), "metavar": "N"},
}
"""The options of several commands."""

_REPEATABLE: Final = ("--share", "--link", "--origin", "--kind")

RUN: Final = (
    *("--seed", "--place", "--clock", "--processor", "--out", "--timeout"),
    *("--shift", "--json"),
)
"""The options of every command that runs something once."""

SERVER: Final = ("--server", "--server-restarts", "--share", "--port")
"""`running.run_options` reads them."""

LINKS: Final = ("--link", "--save")
"""`scenario_of` reads them."""

OUTSIDE: Final = ("--origin", "--outside")
"""`outside` reads them, and `--listen-proxy`."""

PCAP: Final = ("--pcap", "--tls-keys")


def add(parser: argparse._ActionsContainer, *names: str, more: str = "", **other: Any) -> None:
    """Adds shared options. `more` is the end of their help, `other` what is different here."""
    for name in names:
        shared = _SHARED[name] | other
        if name in _REPEATABLE:
            shared = {"action": "append", "default": [], **shared}
        parser.add_argument(name, **{**shared, "help": shared["help"] + more})


def scenario_of(options: argparse.Namespace, name: str | None) -> Scenario:
    """Returns the scenario of a name, or that of `--link`. Writes the latter for `--save`. Raises
    UsageError, ScenarioError, OSError."""
    from linklab.api import requests  # YAML is slow to load.
    from linklab.core import whole_file
    from linklab.realtime import recorder
    from linklab.scenario import to_yaml

    links: dict[str, str] = {}
    for given in options.link:
        key, joined, line = given.partition("=")
        if not joined or key in links:
            wrong = "is the second link of this name" if joined else "has no name"
            raise UsageError(
                f"--link {given}: {wrong}; allowed: such as wifi=20mbit,30ms or lte=fast-4g"
            )
        links[key] = line
    found = requests.scenario_of(name, links)
    if options.save is not None:
        if not links:
            raise UsageError("--save goes with --link: a scenario has its file")
        try:
            recorder.require_new(options.save)
        except recorder.RecordFileError as error:
            raise UsageError(f"--save: {error}") from None
        found = replace(found, name=options.save.stem)
        whole_file.write(options.save, to_yaml(found).encode())
        print(f"--save: wrote the scenario {found.name}: {options.save}", file=sys.stderr)
    return found


@contextlib.contextmanager
def outside(
    options: argparse.Namespace,
    scenario: Scenario,
    place: str,
    go_on: Callable[[], None] = lambda: None,
) -> Iterator[Reach | None]:
    """Yields the connections to the outside that the options ask for, and says what they open.
    Calls `go_on` before each wait. Raises UsageError."""
    from linklab.api import requests  # YAML is slow to load.
    from linklab.realtime import way_outside

    found = requests.outside_of(
        options.origin, options.outside, options.listen_proxy, scenario, place, go_on
    )
    if found is None:
        yield None
        return
    with contextlib.closing(found):
        print("\n".join(way_outside.in_words(found.outside)), file=sys.stderr)
        yield found


def add_live_address(
    parser: argparse.ArgumentParser,
    name: str,
    does: str,
    default: tuple[str, int] = address.DEFAULT,
) -> None:
    """Adds the option for a live lab's address, `options.address`."""
    parser.add_argument(
        name,
        dest="address",
        type=_address,
        default=default,
        metavar="ADDRESS",
        help=f"{does} (default {address.to_text(default)})",
    )


def _address(text: str) -> tuple[str, int]:
    try:
        return address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
