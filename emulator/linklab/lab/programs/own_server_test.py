import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from linklab.core.free_ports import free_ports
from linklab.core.ip_family import Families
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.listening import all_listening
from linklab.lab.programs import own_server
from linklab.lab.programs.own_server import ServerWatch
from linklab.lab.programs.server import Server
from linklab.models.model import Happening


class OwnHost:
    """This machine in place of a host of the lab."""

    pid = os.getpid()

    def start(
        self, argv: list[str], *, environment: dict[str, str], **words: Any
    ) -> subprocess.Popen[bytes]:
        assert environment == {"A": "b"}
        return subprocess.Popen(argv, cwd=words.pop("directory"), **words)


IPV4_LINK = {"wifi": (4,)}


def started(
    argv: list[str], port: int, run_dir: Path, links: Mapping[str, Families] = IPV4_LINK
) -> Server:
    return own_server.start(
        cast(Host, OwnHost()),
        argv,
        port,
        run_dir,
        environment={"A": "b"},
        home=run_dir / "home",
        directory=run_dir,
        links=links,
    )


def free_port() -> int:
    return free_ports(1)


SERVE = """
import socket, sys, time
print("here", flush=True)
time.sleep(0.1)  # The port opens only now.
one = socket.socket(type=getattr(socket, sys.argv[1]))
one.bind((sys.argv[2], int(sys.argv[3])))
if one.type == socket.SOCK_STREAM:
    one.listen()
time.sleep(60)  # Until the test ends it.
"""


def no_longer_than_to_listen(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Ends the time for a start once something has listened on a port for two looks, however long a
    busy machine takes for that."""
    looks = [0]

    def looked() -> int:
        looks[0] += port in [one.port for one in all_listening(os.getpid())]
        return looks[0]

    monkeypatch.setattr(own_server, "START_TIMEOUT_S", 1)
    clock = SimpleNamespace(monotonic=looked, sleep=time.sleep)
    monkeypatch.setattr(own_server, "time", clock)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_it_is_started_once_it_listens(tmp_path: Path, kind: str) -> None:
    port = free_port()
    server = started([sys.executable, "-c", SERVE, kind, "0.0.0.0", str(port)], port, tmp_path)
    try:
        server.check()
        assert port in [one.port for one in all_listening(os.getpid())]
        assert (tmp_path / "server.out").read_text() == "here\n"
    finally:
        server.stop()


def test_a_server_that_cannot_be_reached_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own sockets are named, not those that were there before."""
    port = free_port()
    no_longer_than_to_listen(monkeypatch, port)
    words = rf"does not listen on port {port} of 10.0.0.1, .* but on .*tcp 127.0.0.1:{port}"
    serve = [sys.executable, "-c", SERVE, "SOCK_STREAM", "127.0.0.1", str(port)]
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(LabError, match=words) as told:
            started(serve, port, tmp_path)
        assert f":{other.getsockname()[1]}" not in str(told.value)


def test_a_server_that_ends_at_once_is_said_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"^the server ended with 3 and never .* port 1: no such"):
        started(["sh", "-c", "echo no such luck >&2; exit 3"], 1, tmp_path)


def ended(code: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", f"exit {code}"])


def test_the_end_of_one_s_own_server_is_an_event_and_h2o_s_an_error(tmp_path: Path) -> None:
    noted: list[Happening] = []
    log = tmp_path / "log"
    log.write_text("first\n" + "x" * 1000)
    own = Server(ended(3), log, "the server", again=lambda: ended(4))
    watch = ServerWatch(own, noted.append, 0.01)
    for _ in range(4):
        select.select(watch.descriptors, [], [], 10)
        watch.look()
    watch.close()
    assert [one.detail[:14] for one in noted] == [
        *("ended with 3: ", "started again", "ended with 4: ", "started again")
    ]
    assert {one.kind for one in noted} == {"server"}
    assert max(len(one.detail) for one in noted) < 520
    once = ServerWatch(Server(ended(0), log, "the server", again=lambda: ended(4)), noted.append)
    select.select(once.descriptors, [], [], 10)
    once.look()
    assert once.descriptors == []
    h2o = ServerWatch(Server(ended(0), tmp_path / "none"), noted.append)
    select.select(h2o.descriptors, [], [], 10)
    with pytest.raises(LabError, match=r"^H2O ended with 0"):
        h2o.look()
