"""Compares a lab that was changed and set back with a fresh one, inside the guest in virtual time.

    python restored_lab.py SCENARIO SEED

Prints as JSON what downloads over each link took in both labs, and the states that the links had.
`restored_lab_test.py` runs it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from linklab.lab.network.lab import Lab, built
from linklab.lab.network.topology import SERVER_ADDRESS
from linklab.lab.player import control
from linklab.lab.player.control import Command, Inbox
from linklab.lab.player.player import Anew, Player
from linklab.links.stack import models
from linklab.realtime import link_command
from linklab.scenario import Scenario, load

RUN_SEED = 7
SIZE = 400_000
SERVER = f"""
import socket
listener = socket.create_server(("{SERVER_ADDRESS}", 8000))
print("ready", flush=True)
while True:
    sock, _ = listener.accept()
    with sock:
        try:
            sock.sendall(bytes({SIZE}))
        except OSError:
            pass
"""
CLIENT = f"""
import socket, sys, time
begun = time.monotonic_ns()
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
try:
    sock.connect(("{SERVER_ADDRESS}", 8000))
    while sock.recv(65536):
        print(time.monotonic_ns() - begun)
except OSError as error:
    print(error.errno)
"""
CHANGES: tuple[dict[str, Any], ...] = (
    {"down": "3 Mbit/s"},
    {"rtt": "90 ms", "jitter": "4 ms"},
    {"loss": "5 %"},
    {"queue": "20 kB"},
    {"carrier": "down"},
    {"carrier": "down", "for": "300 ms"},
    {"carrier": "up"},
    {"outage": True},
    {"impair_down": {"loss": "3 %", "delay": "20 ms", "jitter": "5 ms"}},
    {"impair_up": {"duplicate": "5 %"}, "fade": "30 %"},
    {"impair_down": {"police": "2 Mbit/s", "police_burst": "30 kB", "bleach_ecn": True}},
    {"restore": True},
)


@contextlib.contextmanager
def playing(scenario: Scenario, run_dir: Path) -> Iterator[tuple[Lab, Player]]:
    """Yields a lab in which a server waits, and its player from the scenario's start on."""
    anew = functools.partial(models, scenario, RUN_SEED)
    links = anew()
    states = {name: model.at(0.0) for name, model in links.items()}
    with built(scenario, states, RUN_SEED, 0.0, takes_commands=True) as lab:
        player = Player(lab, links, run_dir, sample_s=0.5, inbox=Inbox(run_dir), anew=Anew(anew))
        server = lab.server.start([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            player.start()
            yield lab, player
            player.stop()
        finally:
            server.kill()
            server.wait()


def download(lab: Lab, player: Player, link: str, limit_s: float = 30.0) -> list[int]:
    """Returns when each part of a download came over a link, in nanoseconds from its start on."""
    device = lab.links[link].path.device
    client = lab.client.start([sys.executable, "-c", CLIENT, device], stdout=subprocess.PIPE)
    descriptor = os.pidfd_open(client.pid)
    ended = player.now_s() + limit_s
    player.at(ended, lambda _: client.kill())
    player.play([descriptor])
    os.close(descriptor)
    return [int(one) for one in client.communicate()[0].split()]


def measured(lab: Lab, player: Player, zero_s: float) -> dict[str, list[int]]:
    """Downloads over every link, one after the other, soon after the scenario's start."""
    player.play_until(zero_s + 0.2)
    return {link: download(lab, player, link) for link in lab.links}


def states(run_dir: Path, zero_s: float) -> list[dict[str, Any]]:
    """Returns the links' states since a time, with times from then on."""
    lines = map(json.loads, (run_dir / "links.jsonl").read_text().splitlines())
    return [
        {**one, "t_s": round(one["t_s"] - zero_s, 6), "late_s": 0}
        for one in lines
        if one["t_s"] > zero_s
    ]


def main(path: str, seed: int) -> None:
    """Prints what a fresh lab measures, and one that was set back."""
    scenario, draws = load(path), random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        fresh_dir, used_dir = (Path(scratch, name) for name in ("fresh", "used"))
        for directory in (fresh_dir, used_dir):
            directory.mkdir()
        with playing(scenario, fresh_dir) as (lab, player):
            fresh = measured(lab, player, 0.0)
        with playing(scenario, used_dir) as (lab, player):
            for _ in range(draws.randint(2, 6)):
                link = draws.choice(list(scenario.links))
                change = draws.choice(CHANGES)
                control.send(used_dir, link_command.command_of(link, change))
                download(lab, player, draws.choice(list(scenario.links)), draws.uniform(0.1, 2))
            control.send(used_dir, Command(restore=True))
            zero_s = begun_s(used_dir, player)
            restored = measured(lab, player, zero_s)
        print(
            json.dumps(
                {
                    "fresh": fresh,
                    "restored": restored,
                    "fresh states": states(fresh_dir, 0.0),
                    "restored states": states(used_dir, zero_s),
                    "events": (used_dir / "events.jsonl").read_text().splitlines(),
                }
            )
        )


def begun_s(run_dir: Path, player: Player) -> float:
    """Plays until the scenario has begun anew. Returns the time."""
    while True:
        player.play_until(player.now_s() + 0.01)
        for line in (run_dir / "events.jsonl").read_text().splitlines():
            if (record := json.loads(line))["kind"] == "restored":
                found: float = record["t_s"]
                return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
