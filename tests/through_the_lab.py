"""Runs a lab through whose proxies a program outside downloads from a server outside."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import called, command, environment, ran, until
from free_ports import free_port, free_ports
from linklab.places.guest import gateway

needs_outside = pytest.mark.skipif(gateway.obstacle() is not None, reason=str(gateway.obstacle()))

PATIENCE_S = 60.0
"""The time for short operations, on a machine that is busy with other tests."""


def answers(port: int) -> bool:
    """Tells whether a server listens on a port of the loopback device."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def fetched(url: str, proxy: str, *more: str) -> bytes | None:
    """Returns what curl gets through a proxy, None if it fails."""
    done = subprocess.run(
        ["curl", "-sSf", "-m", "60", "-x", proxy, *more, url], capture_output=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


@contextlib.contextmanager
def listening(port: int, *words: object, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Runs a program during the block, once it listens on a port of the loopback device."""
    null = subprocess.DEVNULL
    process = subprocess.Popen([*map(str, words)], env=env, stdout=null, stderr=null)
    try:
        until(lambda: answers(port), process=process)
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def served(directory: Path, port: int | None = None) -> Iterator[str]:
    """Runs a file server on this machine's loopback device. Yields its URL, with a slash."""
    port = port or free_port()
    program = Path(__file__).with_name("an_origin.py")
    with listening(port, sys.executable, program, port, directory):
        yield f"http://127.0.0.1:{port}/"


def inside(url: str, host: str = "10.0.1.1") -> str:
    """Returns the lab's URL for one of this machine's loopback device, for the first origin. A lab
    with IPv6 has another `host` for it."""
    return url.replace("127.0.0.1", host)


@dataclass
class Launch:
    """Describes how linklab is started and called: the words before its arguments."""

    start: Sequence[str] = field(default_factory=command)
    call: Sequence[str] = field(default_factory=command)
    environment: dict[str, str] = field(default_factory=environment)


class ProxiedLab:
    """Runs `linklab live` for a scenario of Wi-Fi and LTE, with its proxies: `ports` by link, ""
    for all. `origin` is the origin's URL in the lab."""

    def __init__(
        self, directory: Path, launch: Launch, process: subprocess.Popen[Any], first: int
    ) -> None:
        self.directory = directory
        self.process = process
        self.ports = {"": first, "wifi": first + 1, "lte": first + 2}
        self.address = f"127.0.0.1:{first + 3}"
        self.origin = ""
        self._launch = launch

    def proxy(self, link: str = "", scheme: str = "http") -> str:
        """Returns the URL of the proxy over a link, or all."""
        return f"{scheme}://127.0.0.1:{self.ports[link]}"

    def said(self) -> str:
        """Returns its output so far."""
        return (self.directory / "err").read_text()

    def linklab(self, *words: str) -> str:
        """Calls `linklab` as in a second terminal."""
        words = (*words, "--live", self.address)
        launch = self._launch
        if launch == Launch():
            done = called(self.directory, *words, timeout_s=PATIENCE_S)
        else:
            done = ran([*launch.call, *words], cwd=self.directory, env=launch.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> Any:
        """Returns its status."""
        with urllib.request.urlopen(f"http://{self.address}/status", timeout=10) as answer:
            return json.load(answer)

    def run_dir(self) -> Path:
        """Returns the current run's directory on this machine."""
        (found,) = self.directory.glob("runs/*-live/*")
        return found

    def end(self) -> int:
        """Ends it as Ctrl-C does. Returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE_S)


@contextlib.contextmanager
def proxied(
    directory: Path,
    scenario: Path,
    origin: str,
    *words: object,
    launch: Launch | None = None,
    ca: Path | None = None,
    host: str = "10.0.1.1",
) -> Iterator[ProxiedLab]:
    """Yields a lab with a proxy, once the origin's URL can be fetched through it. `ca` is the origin's
    certificate authority, `host` its host in the lab."""
    launch = launch or Launch()
    first = free_ports(4)
    wanted = (
        *("live", scenario, "--place", "guest", "--out", directory / "runs"),
        *("--origin", origin, "--listen-proxy", first, "--listen", f"127.0.0.1:{first + 3}"),
        *words,
    )
    with (directory / "err").open("w") as err:
        process = subprocess.Popen(
            [*launch.start, *map(str, wanted)],
            cwd=directory,
            env=launch.environment,
            stdout=err,
            stderr=err,
        )
    lab = ProxiedLab(directory, launch, process, first)
    lab.origin = inside(origin, host)
    try:
        trusted = () if ca is None else ("--cacert", str(ca))
        first_bytes = (lab.origin, lab.proxy(), "-r", "0-9", *trusted)
        until(lambda: fetched(*first_bytes), lab.said, process=process)
        yield lab
    finally:
        lab.end()
