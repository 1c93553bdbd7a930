"""What may download in a run: linklab's algorithms and the peers they are compared with.

A contestant is a name and the command that it stands for.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linklab.core.paths import MULTILINK
from linklab.lab.topology import LINK_PATHS
from linklab.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """What a contestant is to download in the lab, and where things are there.

    `wireless` has the links' signal strengths in the form of /proc/net/wireless.
    """

    scenario: Scenario
    url: str
    ca_file: str
    output: str
    run_dir: str
    sha256: str
    multilink: str
    wireless: str


Command = Callable[[Task], list[str]]


@dataclass(frozen=True)
class Contestant:
    """One entry of a comparison.

    `links` are the links it uses; `needs` the Debian package of its program;
    `mptcp` whether server and client hosts are to speak Multipath TCP.
    """

    name: str
    command: Command
    links: tuple[str, ...]
    needs: str | None = None
    mptcp: bool = False


def _multilink(
    algorithm: str, links: tuple[str, ...], *options: str, rescue: bool = False
) -> Command:
    """multilink as published, where nobody but the algorithm decides; or with rescue."""

    def command(task: Task) -> list[str]:
        client = task.scenario.client
        argv = [task.multilink, "get", task.url, "--algorithm", algorithm]
        for link in links:
            settings = task.scenario.links[link]
            argv += ["--link", f"{link}={LINK_PATHS[link].device}"]
            if algorithm in ("alg2", "alg3"):
                argv += ["--bandwidth", f"{link}={settings.bandwidth_bps}bit/s"]
        if algorithm == "alg1":
            argv += ["--upper-limit", f"{client.upper_limit_bytes}B"]
        if algorithm == "alg3" and "--plain" not in options:
            argv += ["--padding", str(client.padding)]
        if algorithm.startswith("alg"):
            argv += [
                "--first-request", f"{client.first_request_bytes}B",
                "--overlap", str(client.overlap),
                "--window", f"{client.window_s}s",
            ]  # fmt: skip
        saved = (
            ["--rescue", "--wireless-file", task.wireless]
            if rescue
            else ["--no-rescue", "--resume=false"]
        )
        return [
            *argv, *options, *saved, "--ca-file", task.ca_file,
            "--checksum", f"sha-256={task.sha256}", "--run-dir", task.run_dir, "-o", task.output,
        ]  # fmt: skip

    return command


def _curl(link: str) -> Command:
    def command(task: Task) -> list[str]:
        return [
            "curl", "--silent", "--show-error", "--fail", "--cacert", task.ca_file,
            "--interface", LINK_PATHS[link].device, "--output", task.output, task.url,
        ]  # fmt: skip

    return command


def _mptcp(task: Task) -> list[str]:
    return [
        "mptcpize", "run", "curl", "--silent", "--show-error", "--fail",
        "--cacert", task.ca_file, "--output", task.output, task.url,
    ]  # fmt: skip


def _aria2(connections: int) -> Command:
    devices = ",".join(path.device for path in LINK_PATHS.values())

    def command(task: Task) -> list[str]:
        directory, _, name = task.output.rpartition("/")
        return [
            "aria2c", "--no-conf", "--quiet", "--file-allocation=none", "--console-log-level=error",
            f"--ca-certificate={task.ca_file}", f"--multiple-interface={devices}",
            "-s", str(connections), "-x", str(connections), "-k", "1M",
            "-d", directory, "-o", name, task.url,
        ]  # fmt: skip

    return command


_BOTH = tuple(LINK_PATHS)

CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        *(
            Contestant(f"single-{link}", _multilink("single", (link,)), (link,))
            for link in LINK_PATHS
        ),
        *(
            Contestant(name, _multilink(name, _BOTH), _BOTH)
            for name in ("naive", "alg1", "alg2", "alg3")
        ),
        *(
            Contestant(f"{name}-rescue", _multilink(name, _BOTH, rescue=True), _BOTH)
            for name in ("naive", "alg1", "alg2", "alg3")
        ),
        Contestant("alg3-plain", _multilink("alg3", _BOTH, "--plain"), _BOTH),
        *(
            Contestant(f"curl-{link}", _curl(link), (link,), needs="curl") for link in LINK_PATHS
        ),
        Contestant("mptcp", _mptcp, _BOTH, needs="mptcpize", mptcp=True),
        *(
            Contestant(f"aria2-{n}", _aria2(n), _BOTH, needs="aria2") for n in (2, 8)
        ),
    )
}  # fmt: skip

ALGORITHMS = ("single-wifi", "single-lte", "naive", "alg1", "alg2", "alg3")
"""What `compare` runs unless told otherwise: the thesis' six rows."""

RESCUED = ("naive-rescue", "alg1-rescue", "alg2-rescue", "alg3-rescue")
"""The same algorithms with multilink's rescue, as people use them."""

PEERS = ("curl-wifi", "curl-lte", "mptcp", "aria2-2", "aria2-8")
"""Programs of other people on the same links."""


_PROGRAMS = {"aria2": "aria2c"}
"""Programs that are not called like their Debian package."""


def obstacle(names: Sequence[str]) -> str | None:
    """Why the named contestants cannot run on this machine, and what to do; None if they can."""
    packages = missing_packages(names)
    if packages:
        return f"missing programs: apt-get install {' '.join(packages)}"
    if not MULTILINK.exists() and any(CONTESTANTS[name].needs is None for name in names):
        return f"the client is not there: {MULTILINK}; make setup builds it, or name one in LINKLAB_MULTILINK"
    return None


def missing_packages(names: Sequence[str]) -> list[str]:
    """Debian packages that the named contestants need and this machine lacks."""
    needed = {CONTESTANTS[name].needs for name in names}
    return sorted(
        package
        for package in needed
        if package and not shutil.which(_PROGRAMS.get(package, package))
    )
