"""Groups the commands and their options in `--help`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable

COMMANDS = {
    "run and compare downloads": {
        "run": "run one algorithm in one scenario",
        "compare": "run several algorithms in the same scenarios, side by side",
        "exec": "run your own program over a scenario's links",
        "shell": "open a shell behind a scenario's links, on the real clock",
    },
    "repeat many runs": {
        "regress": "run a suite of downloads and compare them with its baseline",
        "campaign": "run scenarios, algorithms and seeds, on several machines too",
        "reproduce": "run a publication's experiments beside its own figures",
    },
    "watch a live lab": {
        "live": "keep downloading in real time, to be watched and changed",
        "link": "change a link of the live lab",
        "next": "make the live lab go on to its next algorithm, or to one of them",
        "serve": "serve an HTTP API that starts a lab and changes its links",
    },
    "look at finished runs": {
        "report": "make one page of runs, with tables and charts",
        "plot": "draw what a scenario's links can carry, or what a run's did",
        "export": "write run directories as a table: CSV or Parquet",
        "energy": "compute the energy of runs by a model, or list the models",
        "publish": "put finished runs into Prometheus",
    },
    "make scenarios and models": {
        "scenarios": "list the scenarios, or describe some of them",
        "validate": "check scenario files",
        "import": "make a trace or scenario from a recording: Mahimahi, iperf3, …",
        "calibrate": "fit an energy model to measurements",
    },
    "set up this machine": {
        "doctor": "check this machine: kernel features, packages, disk space",
        "clean": "remove what linklab made here outside run directories",
        "completion": "print the script by which your shell completes commands",
    },
}
"""All commands with their descriptions, in groups."""

USUAL = "options"

OPTIONS = {
    USUAL: """
        --help --algorithm --algorithms --scenario --link --save --as --restore --on --for --seed --runs --from --baseline
        --update --reason --model --terms --prometheus-data --figure --seconds --table
        --schema --eib --power --oracle --keys --record --format --energy-model --out --output --report
        --unknowns --force --no-terminal --cache --json
    """,
    "environment, clock and limits": "--place --clock --processor --real-clock --parallel --jobs --timeout --shift",
    "your own server": "--server --server-restarts --port --share",
    "the network outside the lab": "--origin --outside --listen-proxy",
    "packet capture": "--pcap --tls-keys",
    "address of the live lab": "--listen --live --page --dashboards --addresses-fd",
    "several machines": "--scheduler --tls-ca --tls-cert --tls-key",
    "for CI": "--junit --markdown",
    "Prometheus and Grafana": "--retention --grafana --reports --open",
    "about the recording or measurement": """
        --kind --uplink --bin --every --only --opportunity-bytes --device --keep --licence
    """,
}
"""The groups of all commands' options, by an option's longest name. Groups and options are in the
order of the help, the usual options first."""

_PLACES = {
    option: (title, place)
    for title, options in OPTIONS.items()
    for place, option in enumerate(options.split())
}


def command_list() -> str:
    """Returns the commands in their groups, one per line."""
    return "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:<10}  {does}" for name, does in commands.items())])
        for title, commands in COMMANDS.items()
    )


def group_of(option: argparse.Action) -> str:
    """Returns the title of an option's group, USUAL for an option that no group names."""
    return _PLACES.get(name_of(option), (USUAL, 0))[0]


def name_of(option: argparse.Action) -> str:
    """Returns the longest name of an option, by which `OPTIONS` has it."""
    # An option with only a short name, such as -o, is found by its `dest`.
    name = max(option.option_strings, key=len, default="")
    return name if name.startswith("--") else f"--{option.dest}"


def in_order(actions: Iterable[argparse.Action]) -> list[argparse.Action]:
    """Returns a group's options in the order of `OPTIONS`. Positional arguments keep their order."""
    found = list(actions)
    if not all(one.option_strings for one in found):
        return found
    return sorted(found, key=lambda one: _PLACES.get(name_of(one), ("", math.inf))[1])


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Shows the options of a group in the order of `OPTIONS`."""

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        """Adds a group's arguments."""
        super().add_arguments(in_order(actions))
