"""Runs a server of the user's on the lab's server host, instead of H2O, and follows its ends."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from linklab.core.ip_family import ONLY_IPV4, Families, in_family, in_words
from linklab.core.timer import Timer
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.listening import Listening, all_listening
from linklab.lab.network.topology import SERVER_ADDRESS
from linklab.lab.programs.server import START_TIMEOUT_S, Server
from linklab.models.model import Happening

LOOK_S = 0.02
"""The interval in which it is checked whether the server listens. Computing takes no virtual time,
so by the second check the server has opened all sockets that need no waiting."""

_MOST_WORDS = 500
"""The most characters of the server's last line in an event."""


def start(
    host: Host,
    argv: Sequence[str],
    port: int,
    run_dir: Path,
    *,
    environment: dict[str, str],
    home: Path,
    directory: Path,
    links: Mapping[str, Families],
) -> Server:
    """Starts the user's server on `host`, in `directory`. Makes its `home`. Returns once it listens on `port`, by TCP or UDP, for all
    `links` by their families, and has opened no further socket since the last check. Its output goes
    to `server.out` and `server.err`. Raises LabError if it does not listen."""
    home.mkdir()
    others_own = all_listening(host.pid)
    log = run_dir / "server.err"

    def begin() -> subprocess.Popen[bytes]:
        with (run_dir / "server.out").open("ab") as out, log.open("ab") as err:
            return host.start(
                [*argv], stdout=out, stderr=err, environment=environment, directory=directory
            )

    process = begin()
    server = Server(process, log, "the server", again=begin)
    deadline = time.monotonic() + START_TIMEOUT_S
    before: list[Listening] = []
    while True:
        now = [one for one in all_listening(host.pid) if one not in others_own]
        if now == before and not _unreached(now, port, links):
            return server
        before = now
        if process.poll() is not None:
            server.stop()
            raise LabError(f"{server.end} and never listened on port {port}: {server.last_words}")
        if time.monotonic() > deadline:
            server.stop()
            others = ", ".join(map(str, now)) or "no port"
            raise LabError(
                f"the server does not listen on port {port} of {_unreached(now, port, links)}, by TCP "
                f"or UDP, but on {others}: {server.last_words}"
            )
        time.sleep(LOOK_S)


def _unreached(now: Sequence[Listening], port: int, links: Mapping[str, Families]) -> str:
    """Returns the server's address that a link needs and nothing listens on, "" if all are reached."""
    reached = {family for one in now if one.port == port for family in one.families}
    for name, families in links.items():
        if not reached.intersection(families):
            addresses = " or ".join(in_family(SERVER_ADDRESS, family) for family in families)
            why = (
                "" if families == ONLY_IPV4 else f", for link {name} has {in_words(families)} only"
            )
            return addresses + why
    return ""


class ServerWatch:
    """Follows the ends of a run's server. The end of a user's server is an event of the run, which
    it tells to `note`. It starts the server again after `restarts_after_s`, unless that is None."""

    def __init__(
        self,
        server: Server,
        note: Callable[[Happening], None],
        restarts_after_s: float | None = None,
    ) -> None:
        self._server = server
        self._note = note
        self._restarts_after_s = restarts_after_s
        self._end: int | None = os.pidfd_open(server.process.pid)
        self._timer: Timer | None = None

    @property
    def descriptors(self) -> list[int]:
        """What becomes readable when `look` has something to do."""
        if self._timer is not None:
            return [self._timer.fileno()]
        return [] if self._end is None else [self._end]

    def look(self) -> None:
        """Notes the server's end, or starts it again. Raises LabError if H2O has ended."""
        if self._timer is not None:
            self.close()
            assert self._server.again is not None
            self._server.process = self._server.again()
            self._end = os.pidfd_open(self._server.process.pid)
            self._note(Happening("server", "started again"))
            return
        self.close()
        if self._server.again is None:
            self._server.check()
        self._server.process.wait()
        words = self._server.last_words[:_MOST_WORDS]
        self._note(Happening("server", f"ended with {self._server.process.returncode}: {words}"))
        if self._restarts_after_s is not None:
            self._timer = Timer()
            self._timer.set(time.monotonic_ns() + round(self._restarts_after_s * 1e9))

    def close(self) -> None:
        """Closes the descriptors. The server goes on."""
        if self._timer is not None:
            self._timer.close()
        if self._end is not None:
            os.close(self._end)
        self._timer = self._end = None
