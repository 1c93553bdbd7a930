"""Implements `linklab link`: changes a link of the live lab."""

from __future__ import annotations

import argparse
import sys
import textwrap

from linklab.commands.options import UsageError, add_live_address
from linklab.models import events
from linklab.realtime import link_command

_KEYS = {row.key: row.about for row in events.CHANGES} | {
    link_command.RESTORE: "no VALUE; the link becomes as the scenario says"
}
_LINES = "\n".join(
    textwrap.fill(f"{key:<12} {about}", 78, initial_indent="  ", subsequent_indent=" " * 15)
    for key, about in _KEYS.items()
)
EPILOG = f"""\
The keys and values are those of events in scenarios. What a change leaves out
stays. KEY is one of
{_LINES}

examples:
  linklab link wifi carrier down --for 3s
  linklab link lte down 10mbit
  linklab link lte impair_up 'loss: 1 %, delay: 20 ms'"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab link`."""
    parser.add_argument("link", help="its name in the scenario, such as wifi or lte")
    parser.add_argument("change", choices=(*_KEYS, *link_command.OLD), metavar="KEY")
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
    change, warning = link_command.of_today(options.change, options.value)
    if warning:
        print(f"linklab: {warning}", file=sys.stderr)
    if options.duration is not None:
        change["for"] = options.duration
    try:
        command = link_command.command_of(options.link, change)
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(link_command.send(options.address, command))
    return 0
