"""Implements `linklab link`: changes a link of the live lab."""

from __future__ import annotations

import argparse

from linklab.commands.options import UsageError, add_live_address
from linklab.realtime import link_command

_CHANGES = "\n".join(f"  {name:<10} {what}" for name, what in link_command.CHANGES.items())
EPILOG = f"CHANGE is one of\n{_CHANGES}\n\nexample:\n  linklab link lte rate 10mbit --for 5s"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab link`."""
    parser.add_argument("link", help="its name in the scenario, such as wifi or lte")
    parser.add_argument("change", choices=tuple(link_command.CHANGES), metavar="CHANGE")
    parser.add_argument("value", nargs="?", metavar="VALUE")
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        help="revert after this time, such as 3s (default: never)",
    )
    add_live_address(parser, "--live", "the live lab's address")


def run(options: argparse.Namespace) -> int:
    """Sends the change to the live lab and prints its answer."""
    try:
        command = link_command.command_of(
            options.link, options.change, options.value, options.duration
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(link_command.send(options.address, command))
    return 0
