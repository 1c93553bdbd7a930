"""Makes the calls of `linklab exec` for a server and its cells, and reads the outcomes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linklab.core.paths import MULTILINK

from served.kinds import BEGIN, SERVERS

INSIDE = Path(__file__).with_name("inside.py")
CLIENT = Path(__file__).resolve().parents[2] / "emulator" / "setup" / "client"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GETS = ("get", "proxy")
PUT = "put"

SCENARIO = """\
name: {name}
payload: {{size: {size} B}}
links:
  wifi: {{down: 40 Mbit/s, up: 40 Mbit/s, rtt: 20 ms, queue: 500 kB}}
  lte: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 40 ms, queue: 500 kB}}
"""

ODD = """\
tail -f /dev/null | exec {program} -addresses "$LINKLAB_ADDRESS:$LINKLAB_PORT" -host "$LINKLAB_ADDRESS" \\
  -certificate "$LINKLAB_CERTIFICATE" -key "$LINKLAB_KEY" -file root/payload*
"""


@dataclass(frozen=True)
class Outcome:
    """Holds the outcome of a client at a server or habit. `kind` is right, fails (an error, no
    harm), wrong (another file without an error) or harms (an error, and the server's old file is
    gone)."""

    server: str
    who: str
    kind: str
    said: str


@dataclass(frozen=True)
class Matrix:
    """Holds the cells of one lab. `words` are the arguments of `linklab`. `cells` are pairs of a
    server or habit and a client."""

    words: tuple[object, ...]
    cells: Sequence[tuple[str, str]]

    def outcomes(self, run_dir: Path) -> list[Outcome]:
        """Returns the outcomes of the cells, from the run's files."""
        payload = json.loads((run_dir / "run.json").read_text())["payload_sha256"]
        allowed = {row[0]: row[3].split(",") for row in _rows((run_dir / "server.out").read_text())}
        lines = (run_dir / "client.out").read_text().splitlines()
        return [
            Outcome(
                server,
                who,
                _kind(row, allowed.get(server, [payload])),
                row["said"],
            )
            for (server, who), row in zip(self.cells, map(json.loads, lines), strict=True)
        ]


def _kind(row: dict[str, Any], allowed: Sequence[str]) -> str:
    is_put = row["who"] == PUT
    is_there = row["sha256"] == row["put"] if is_put else row["sha256"] in allowed
    if row["code"] == 0:
        return "right" if is_there else "wrong"
    return "harms" if is_put and row["sha256"] not in (row["was"], row["put"]) else "fails"


def is_missing(server: str) -> bool:
    """Tells whether this machine lacks a server's program."""
    path = f"{SYSTEM_PATH}:{os.environ['PATH']}"
    return shutil.which(SERVERS[server].program, path=path) is None


def build_odd(directory: Path) -> Path:
    """Builds the odd server in the directory."""
    program = directory / "oddserver"
    subprocess.run([CLIENT, "oddserver", program], check=True)
    return program


def habits(program: Path) -> dict[str, str]:
    """Returns the odd server's habits with their kind, `get` or `put`."""
    listed = subprocess.run(
        [program, "-size", "1"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return {row[0]: row[2] for row in _rows(listed.stdout)}


def _rows(text: str) -> list[list[str]]:
    return [row for line in text.splitlines() if len(row := line.split("\t")) == 5]


def server(directory: Path, name: str, size: int) -> Matrix:
    """Makes a lab with a server of `size` bytes, and clients one after the other."""
    of = SERVERS[name]
    scheme, port = ("https", 443) if of.encrypted else ("http", 80)
    asked = [*GETS, *([PUT] if of.puts else [])]
    base = f"{scheme}://10.0.0.1"
    urls = [f"{base}/put/{who}" if who == PUT else f"{base}/payload-{size}-1.bin" for who in asked]
    cells = [(name, who) for who in asked]
    return _matrix(directory, name, size, of.script, port, cells, urls)


def odd(directory: Path, name: str, size: int, program: Path, habits: dict[str, str]) -> Matrix:
    """Makes a lab with the odd server's habits, and clients one after the other at each."""
    cells = [
        (habit, who) for habit, way in habits.items() for who in ((PUT,) if way == "put" else GETS)
    ]
    urls = [f"https://10.0.0.1/{habit}/{who}" for habit, who in cells]
    return _matrix(directory, name, size, ODD.format(program=program), 443, cells, urls)


def _scenario(directory: Path, name: str, size: int) -> Path:
    file = directory / f"{name}.yaml"
    file.write_text(SCENARIO.format(name=name, size=size))
    return file


def _matrix(
    directory: Path,
    name: str,
    size: int,
    script: str,
    port: int,
    cells: Sequence[tuple[str, str]],
    urls: Sequence[str],
) -> Matrix:
    serve = directory / f"{name}-serve"
    serve.write_text(BEGIN.format(payload=f"payload-{size}-1.bin") + script)
    serve.chmod(0o755)
    tasks = directory / f"{name}-cells.json"
    listed = [{"who": who, "url": url} for (_, who), url in zip(cells, urls, strict=True)]
    tasks.write_text(json.dumps({"size": size, "cells": listed}))
    words = (
        "exec",
        _scenario(directory, name, size),
        "--server",
        serve,
        "--port",
        port,
        "--timeout",
        1800,
        "--",
        sys.executable,
        INSIDE,
        MULTILINK,
        tasks,
    )
    return Matrix(words, cells)
