"""Implements `linklab shell`: opens a terminal in the lab."""

from __future__ import annotations

import argparse
import shutil
import signal
from dataclasses import replace

from linklab.api import requests
from linklab.commands import running
from linklab.commands.options import (
    LINKS,
    OUTSIDE,
    SERVER,
    add,
    add_live_address,
    outside,
    scenario_of,
)
from linklab.lab.programs.terminal import Terminal
from linklab.places.names import PLACES
from linklab.realtime import session, shell, user_terminal

EPILOG = """\
The shell is bash, or what follows `--`. It runs on the client host (--on
server: on the server host) on the real clock, with your programs and multilink
on its PATH, in the current directory. LINKLAB_URL and the other
variables of `linklab exec` are set. In the guest you can read this machine's
files. What you write where you stand goes into a layer. `linklab exec --help`
says what you see of homes. /tmp is memory and ends with the shell. Files in
LINKLAB_RUN_DIR stay.
From another terminal:
  linklab link wifi carrier down --for 3s
  linklab link lte down 10mbit

examples:
  linklab shell static-80-50
  linklab shell hs-s7 --on server -- iperf3 -s"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab shell`. A command after `--` is `options.command`."""
    add(parser, *LINKS)
    parser.add_argument("scenario", nargs="?")
    parser.add_argument(
        "--on",
        choices=("client", "server"),
        default="client",
        help="the shell's host (default client)",
    )
    add(parser, "--seed")
    parser.add_argument("--place", choices=PLACES, default="auto")
    add(parser, *SERVER)
    add(parser, *OUTSIDE)
    add(parser, "--listen-proxy", more="(real clock)")
    add(parser, "--out", help="(default runs/)")
    add_live_address(parser, "--listen", "where to serve metrics and take commands")
    parser.usage = "linklab shell [options] SCENARIO [-- COMMAND…]"


def run(options: argparse.Namespace) -> int:
    """Runs the shell until it or its terminal ends. Returns the shell's exit code."""
    # A closing window sends the signal more than once.
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
    window = user_terminal.window(0)
    user_terminal.window(1)
    scenario = scenario_of(options, options.scenario)
    where = session.choose_place(options.place)
    running.announce(where)
    how = running.run_options(options)
    terminal = Terminal(window=window, on=options.on)
    with outside(options, scenario, where.name) as reach:
        request = requests.for_command(scenario, options.command or _shell(), how, reach)
        request = replace(request, name="shell", terminal=terminal)
        return shell.run(request, where, options.out, options.address)


def _shell() -> tuple[str, ...]:
    """Returns bash, without start-up files that would replace the prompt, or sh."""
    return ("sh", "-i") if shutil.which("bash") is None else ("bash", "--norc", "-i")
