"""Implements `linklab exec`: runs any program as the lab's client."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys

import msgspec

from linklab.api import requests
from linklab.commands import running
from linklab.commands.options import (
    LINKS,
    OUTSIDE,
    PCAP,
    RUN,
    SERVER,
    UsageError,
    add,
    outside,
    scenario_of,
)
from linklab.core import plain_file
from linklab.core.error_report import report_error
from linklab.places import choice
from linklab.runs import outcome, server_ends, time_series

EPILOG = """\
The program finds LINKLAB_URL, LINKLAB_CA, LINKLAB_OUTPUT and LINKLAB_SHA256 in
its environment (SSL_CERT_FILE and CURL_CA_BUNDLE too), and the server's
LINKLAB_ADDRESS and LINKLAB_PORT; {url}, {ca}, {output}, {address} and {port} in
its arguments are filled in. Links are devices: wlan0 (Wi-Fi), rmnet0 (LTE), nr0
(5G), sat0, eth0, net0. Further ones are wlan1, rmnet1. If a link has a radio,
LINKLAB_WIRELESS names a file with its signal, as in /proc/net/wireless.
run.json keeps the command, so no URL in it may have a user or password.

Programs are found on your PATH, which the program gets too, and LANG, LC_ALL,
TERM and VIRTUAL_ENV. For other variables write the command as
env NAME=VALUE PROGRAM. HOME is an empty directory. Programs start where you
stand. What they write there, up to 16 MB, is written/ of the run directory.

The guest hides home directories. Your programs only see:
  the current directory, and those of your PATH
  themselves, with the venv or toolchain that they belong to
  the files and directories that the command names
  what --share DIR names
Only --share shows a whole home, or a directory of settings such as ~/.config.

At the end {output} must be the whole file, or the run has no figures. A program
that writes no {output} and receives less than the file is no download. Its run
has neither goodput nor efficiency.

--server runs a server of your own in place of H2O; the program starts once it
listens on its port, by TCP or UDP. If the server ends, the program goes on, and
events.jsonl has when. --server-restarts 2s starts it again.

The server finds LINKLAB_ADDRESS, LINKLAB_PORT, LINKLAB_CERTIFICATE (of the
authority in LINKLAB_CA), LINKLAB_KEY and LINKLAB_DIRECTORY, which holds the
file of {url}; {address}, {port}, {certificate}, {key} and {directory} in its
arguments are filled in. What it prints is server.out and server.err of the run
directory.

If the scenario has IPv6, {url} has the server's name. If it has both families,
{address} is that name for the program, and :: for the server. Beside a port,
write the server's address as [{address}]:{port}.

--origin and --outside lead out of the lab, --listen-proxy into it, on the real
clock, by TCP and UDP. --outside opens IPv4 alone. LINKLAB_ORIGIN and {origin}
are the first origin's URL as it is in the lab, where this machine's own servers
have another address.

examples:
  linklab exec static-80-50 -- aria2c --ca-certificate={ca} \\
    --multiple-interface=wlan0,rmnet0 -s2 -x2 -k1M -d /tmp {url}
  linklab exec --link wifi=20mbit,30ms,1% --link lte=fast-4g -- curl -O {url}
  linklab exec static-80-50 --server 'iperf3 -s -p {port}' -- \\
    iperf3 -c {address} -p {port} --reverse --time 5"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab exec`. The command after `--` is `options.command`."""
    add(parser, *RUN, *SERVER, *OUTSIDE)
    add(parser, "--listen-proxy", more="(real clock)")
    add(parser, *PCAP, *LINKS)
    parser.add_argument("scenario", nargs="?")
    parser.usage = "linklab exec [options] SCENARIO -- COMMAND…"


def run(options: argparse.Namespace) -> int:
    """Runs the command and passes on its output. Returns 0, or 1 if it failed."""
    if not options.command:
        raise UsageError("exec needs a command: linklab exec SCENARIO -- COMMAND…")
    scenario = scenario_of(options, options.scenario)
    place = _place(options)
    how = running.run_options(options)
    with outside(options, scenario, place) as reach:
        request = requests.for_command(scenario, options.command, how, reach)
        finished = running.run_one(request, options)
    for name, stream in (("client.out", sys.stdout), ("client.err", sys.stderr)):
        path = finished.run_dir / name
        if os.path.lexists(path) and not options.json:
            stream.flush()
            with plain_file.opened(path) as file:
                shutil.copyfileobj(file, stream.buffer)
            stream.buffer.flush()
    ended = None if finished.error is not None else outcome.read(finished.run_dir)
    if options.json:
        said = {
            "scenario": scenario.name,
            "command": list(options.command),
            "server": options.server,
            "server_ends": server_ends.found_in(finished.run_dir),
            "run_dir": str(finished.run_dir),
            "error": finished.error,
            "exit_code": ended and ended.exit_code,
            "elapsed_s": ended and ended.elapsed_ns / 1e9,
            "received_bytes": ended and ended.received_bytes,
            "requests": msgspec.to_builtins(
                time_series.all_requests(
                    finished.run_dir, request.shift_s, scenario.payload.size_bytes
                )
            ),
        }
        print(json.dumps(said, indent=2))
    elif ended is None:
        report_error(finished.error)
    else:
        for end in server_ends.found_in(finished.run_dir):
            report_error(end)
        received = ", ".join(f"{k} {v / 1e6:.1f} MB" for k, v in ended.received_bytes.items())
        print(
            f"exit code {ended.exit_code} after {ended.elapsed_ns / 1e9:.3f} s; "
            f"received: {received}\nrun directory: {finished.run_dir}",
            file=sys.stderr,
        )
    return 0 if ended is not None and ended.exit_code == 0 else 1


def _place(options: argparse.Namespace) -> str:
    """Returns the environment to run in. Connections to the outside need the real clock. Raises
    UsageError."""
    if options.origin or options.outside or options.listen_proxy:
        options.clock = requests.clock_with_outside(options.clock)
    return choice.choose(options.place, options.clock).name
