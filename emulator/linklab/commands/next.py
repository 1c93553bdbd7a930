"""Implements `linklab next`: makes the live lab go on to its next algorithm."""

from __future__ import annotations

import argparse

from linklab.commands.options import add_live_address
from linklab.lab.player.control import Command
from linklab.realtime import link_command


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "algorithm", nargs="?", help="which of those that take turns (default the next one)"
    )
    add_live_address(parser, "--live", "the live lab's address")


def run(options: argparse.Namespace) -> int:
    """Sends the request to the live lab and prints its answer."""
    print(link_command.send(options.address, Command(next=True, algorithm=options.algorithm)))
    return 0
