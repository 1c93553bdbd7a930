"""Runs the range server: H2O with the project's configuration, on the lab's server host."""

from __future__ import annotations

import pwd
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from linklab.core.ip_family import family_of
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.socket_options import SOCKET_FAMILIES
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.services import HTTP_PORT, HTTPS_PORT
from linklab.lab.programs.h2o import configuration

START_TIMEOUT_S = 10.0


@dataclass
class Server:
    """Holds a running server and its error log. `again` starts a user's server once more. H2O has
    none."""

    process: subprocess.Popen[bytes]
    error_log: Path
    name: str = "H2O"
    again: Callable[[], subprocess.Popen[bytes]] | None = None

    def check(self) -> None:
        """Raises LabError with the end of its error log if it has died."""
        if self.process.poll() is not None:
            raise LabError(f"{self.end}: {self.last_words}")

    @property
    def end(self) -> str:
        return f"{self.name} ended with {self.process.returncode}"

    @property
    def last_words(self) -> str:
        """The last line of its error log."""
        return _last_line(self.error_log)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "it said nothing"


def least_user(file: Path) -> str:
    """Returns the user with the fewest rights who can read `file`: nobody, or else its owner.

    Raises LabError if the owner has no name, because H2O knows users only by name.
    """
    open_to_all = all(parent.stat().st_mode & stat.S_IXOTH for parent in file.parents)
    if open_to_all and file.stat().st_mode & stat.S_IROTH:
        return "nobody"
    owner = file.stat().st_uid
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        raise LabError(
            f"only user {owner}, who has no name on this machine, can read {file}: "
            "set LINKLAB_CACHE to a directory that everybody may enter"
        ) from None


def start(
    host: Host,
    certificate: Path,
    key: Path,
    payload: Path,
    run_dir: Path,
    *,
    mptcp: bool = False,
    uploads: Path | None = None,
    plain: bool = False,
    addresses: tuple[str, ...],
) -> Server:
    """Starts H2O on `host` and returns once it listens on all `addresses`. Raises LabError if it does
    not.

    With `mptcp` its listeners also speak Multipath TCP (mptcpize's preload). With `uploads` it
    answers messages and keeps uploads there. With `plain` it also serves HTTP without TLS.
    """
    conf = run_dir / "h2o.conf"
    error_log = run_dir / "h2o-error.log"
    first, *others = addresses
    conf.write_text(
        configuration(
            (first, HTTPS_PORT),
            certificate,
            key,
            payload.parent,
            access_log=run_dir / "h2o-access.jsonl",
            error_log=error_log,
            user=least_user(payload),
            uploads=uploads,
            plain_port=HTTP_PORT if plain else None,
            mptcp=mptcp,
            also_on=tuple(others),
        )
    )
    argv = ["h2o", "-m", "worker", "-c", str(conf)]
    if mptcp:
        argv = ["mptcpize", "run", *argv]
    with error_log.open("ab") as output:
        process = host.start(argv, stdout=output, stderr=output, directory=run_dir)
    server = Server(process, error_log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while not all(_listens(host, address) for address in (first, *others)):
        server.check()
        if time.monotonic() > deadline:
            server.stop()
            raise LabError(f"H2O does not listen on port {HTTPS_PORT}: {server.last_words}")
        time.sleep(0.005)
    return server


def _listens(host: Host, address: str) -> bool:
    family = SOCKET_FAMILIES[family_of(address)]
    with inside(host.node.namespace), socket.socket(family) as probe:
        return probe.connect_ex((address, HTTPS_PORT)) == 0
