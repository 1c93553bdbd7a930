"""Implements `linklab link`: changes a link of the live lab."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from linklab.commands.options import UsageError, add_live_address
from linklab.lab.player.control import Command
from linklab.models import events
from linklab.realtime import link_command
from linklab.scenario import find

_KEYS = {row.key: row.about for row in events.CHANGES} | {
    link_command.RESTORE: "no VALUE; the link becomes as the scenario says"
}
_LINES = "\n".join(
    textwrap.fill(f"{key:<12} {about}", 78, initial_indent="  ", subsequent_indent=" " * 15)
    for key, about in _KEYS.items()
)
EPILOG = f"""\
--as gives a link all values of another one: LINK --as fast-4g, or any line of
`linklab run --link`. Without LINK, --as SCENARIO does so with all links of the
same names. Models and events of that scenario are not taken on.

The keys and values are those of events in scenarios. What a change leaves out
stays. KEY is one of
{_LINES}

examples:
  linklab link wifi carrier down --for 3s
  linklab link lte down 10mbit
  linklab link lte --as fast-4g
  linklab link --as train
  linklab link --restore
  linklab link lte impair_up 'loss: 1 %, delay: 20 ms'"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("link", nargs="?", help="its name in the scenario, such as wifi or lte")
    parser.add_argument("change", nargs="?", choices=tuple(_KEYS), metavar="KEY")
    parser.add_argument("value", nargs="?", metavar="VALUE")
    parser.add_argument(
        "--as",
        dest="like",
        metavar="LINK|SCENARIO",
        help="a preset or a link in one line; without LINK the links of a scenario",
    )
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        help="revert after this time, such as 3s (default: never)",
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="without LINK: set the whole lab back to the scenario's start",
    )
    add_live_address(parser, "--live", "the live lab's address")


def run(options: argparse.Namespace) -> int:
    """Sends the changes to the live lab and prints its answers."""
    wanted = (options.change is not None, options.like is not None, options.restore)
    links = {True} if options.change else {False} if options.restore else {True, False}
    if sum(wanted) != 1 or (options.link is not None) not in links:
        raise UsageError(
            "which change? allowed: LINK KEY VALUE, LINK --as LINK, --as SCENARIO, or --restore"
        )
    if options.restore:
        return _restore(options)
    for link, change in _changes(options):
        if options.duration is not None:
            change["for"] = options.duration
        try:
            command = link_command.command_of(link, change)
        except ValueError as error:
            raise UsageError(str(error)) from None
        print(link_command.send(options.address, command))
    return 0


def _restore(options: argparse.Namespace) -> int:
    """Sets the live lab back, and prints its answer and what goes on as it was."""
    answer = link_command.answer_to(options.address, Command(restore=True))
    print(answer["done"])
    if answer["stays"]:
        print(f"linklab: not set back: {', '.join(answer['stays'])}", file=sys.stderr)
    return 0


def _changes(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the changes by link. Raises UsageError, ScenarioError, RuntimeError."""
    if options.change is not None:
        yield options.link, link_command.of_words(options.change, options.value)
    elif options.link is not None:
        try:
            yield options.link, link_command.as_line(options.like)
        except ValueError as error:
            raise UsageError(f"--as {error}") from None
    else:
        wanted = find(options.like)
        try:
            found = link_command.of_scenario(wanted, link_command.links_at(options.address))
        except link_command.UnknownLinkError as error:
            raise UsageError(str(error)) from None
        for link, (change, left) in found.items():
            if left:
                print(f"linklab: {link}: a running link has no {', '.join(left)}", file=sys.stderr)
            yield link, change
