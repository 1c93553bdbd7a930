"""Tests UDP and QUIC over the links: in virtual time, from outside by SOCKS5, and to the outside."""

import contextlib
import hashlib
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import (
    PROBES,
    REPOSITORY,
    Linklab,
    ScenarioFile,
    command,
    finished,
    ran,
    succeeded,
    until,
)
from datagrams import NO_ANSWER_S, Association, echo
from free_ports import free_port
from host_place_test import LISTENS, nested
from linklab.lab.programs import certificates
from through_the_lab import PATIENCE_S, ProxiedLab, inside, listening, needs_outside, proxied

RTT_S = {"wifi": 0.02, "lte": 0.06}
WIFI, LTE = (
    "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
    "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms",
)


@pytest.mark.parametrize(
    ("device", "down_mbps", "up_mbps", "rtt_ms"), [("wlan0", 20, 5, 20), ("rmnet0", 10, 3, 60)]
)
def test_datagrams_by_socks_take_as_long_as_the_link_does(
    linklab: Linklab,
    scenario: ScenarioFile,
    device: str,
    down_mbps: int,
    up_mbps: int,
    rtt_ms: int,
) -> None:
    """To 2 µs. A program beside `multilink proxy` sends, so that virtual time shows each nanosecond."""
    link = f"down: {down_mbps} Mbit/s, up: {up_mbps} Mbit/s, rtt: {rtt_ms} ms"
    sizes = (0, 1, 100, 300, 1000, 1472)
    probe = (PROBES / "associate.py", REPOSITORY / "build/multilink", device, *sizes)
    words = (scenario("exact", wifi=link, lte=link), "--", "python3", *probe)
    run_dir = succeeded(linklab, "exec", *words).run_dir
    us_per_byte = 8 * (1 / down_mbps + 1 / up_mbps)
    errors_us = [
        took_ns / 1e3 - rtt_ms * 1e3 - (14 + 20 + 8 + size) * us_per_byte
        for size, took_ns in json.loads((run_dir / "client.out").read_text())
    ]
    assert len(errors_us) == len(sizes)
    assert all(abs(one) <= 2 for one in errors_us), errors_us


@needs_outside
@pytest.mark.one_at_a_time("rates")
def test_datagrams_from_outside_take_the_links(tmp_path: Path, scenario: ScenarioFile) -> None:
    file = scenario("datagrams", size="1 MB", wifi=WIFI, lte=LTE)
    with echo() as port, proxied(tmp_path, file, f"http://127.0.0.1:{port}/") as lab:
        for name, link in (("wifi", "wifi"), ("lte", "lte"), ("", "wifi")):
            with contextlib.closing(Association(lab.ports[name])) as association:
                assert association.at[0] == "127.0.0.1"
                assert association.rtt_s("10.0.1.1", port) > RTT_S[link]
        with contextlib.closing(Association(lab.ports["wifi"])) as association:
            whole = bytes(8000)
            answer = association.ask("10.0.1.1", port, whole)
            assert answer is not None
            assert answer.startswith(whole)
            lost = association.ask("10.0.1.1", port, b"part", fragment=1, patience_s=NO_ANSWER_S)
            assert lost is None
            _only_the_origin_is_reached(association, port)
            again = association.ask("10.0.1.1", port, b"again")
            assert again is not None
            assert again.partition(b" from ")[2] == answer.rpartition(b" from ")[2], "one socket"
        _moves_to_a_link_that_is_up(lab, port)
        assert "Traceback" not in lab.said()


def _only_the_origin_is_reached(association: Association, port: int) -> None:
    """Neither another port of this machine, nor this machine by its other addresses in the guest."""
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.settimeout(1)
        closed = other.getsockname()[1]
        for address in ("10.0.1.1", "192.0.2.2", "127.0.0.1"):
            assert association.ask(address, closed, b"x", patience_s=NO_ANSWER_S) is None
        for address in ("192.0.2.2", "127.0.0.1"):
            assert association.ask(address, port, b"x", patience_s=NO_ANSWER_S) is None
        with pytest.raises(TimeoutError):
            other.recv(1)


def _moves_to_a_link_that_is_up(lab: ProxiedLab, port: int) -> None:
    with contextlib.closing(Association(lab.ports[""])) as association:
        assert association.ask("10.0.1.1", port, b"before") is not None
        lab.linklab("link", "wifi", "carrier", "down")
        # The first datagram after the change takes LTE. A busy machine may answer late.
        until(lambda: association.ask("10.0.1.1", port, b"after", patience_s=NO_ANSWER_S))
        assert association.rtt_s("10.0.1.1", port) > RTT_S["lte"]
        lab.linklab("link", "wifi", "carrier", "up")


@needs_outside
@pytest.mark.one_at_a_time("rates")
def test_associations_are_bounded_and_end_with_their_connections(
    tmp_path: Path, scenario: ScenarioFile
) -> None:
    file = scenario("bounded", size="1 MB", wifi=WIFI, lte=LTE)
    with echo() as port, proxied(tmp_path, file, f"http://127.0.0.1:{port}/") as lab:
        proxy = lab.ports[""]
        many = [Association(proxy) for _ in range(64)]
        assert all(one.ask("10.0.1.1", port, b"x") for one in many[::16])
        with pytest.raises(AssertionError, match="x05.x00.x05.x01"):
            Association(proxy)
        for one in many:
            one.tcp.close()

        def has_room() -> bool:
            with contextlib.suppress(AssertionError):
                Association(proxy).close()
                return True
            return False

        until(has_room)
        deadline = time.monotonic() + PATIENCE_S
        with pytest.raises(ConnectionRefusedError):
            while time.monotonic() < deadline:  # Another one may have ended first.
                many[0].ask("10.0.1.1", port, b"x", patience_s=0.1)
        for one in many:
            one.close()


@pytest.fixture
def quic_server(tmp_path: Path, http3: Path) -> Iterator[tuple[str, Path, bytes]]:
    """Runs quic-go's server on this machine's loopback device, by TCP and UDP. Yields its URL of a file,
    its certificate authority, and the file."""
    content = hashlib.shake_128(b"quic").digest(3_000_000)
    directory = tmp_path / "www"
    directory.mkdir()
    (directory / "file").write_bytes(content)
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    names = ("127.0.0.1", "10.0.1.1")
    certificates.ensure((ca, tmp_path / "ca.key"), (cert, key), names, bytes(32))
    port = free_port()
    server = (http3 / "example", "-bind", f"127.0.0.1:{port}", "-tcp")
    with listening(port, *server, "-cert", cert, "-key", key, "-www", directory):
        yield f"https://127.0.0.1:{port}/file", ca, content


@needs_outside
@pytest.mark.one_at_a_time("rates")
def test_http3_by_socks_from_outside(
    tmp_path: Path,
    scenario: ScenarioFile,
    http3: Path,
    quic_server: tuple[str, Path, bytes],
) -> None:
    """A QUIC client of this machine downloads each half from a server of this machine over a link."""
    url, ca, content = quic_server
    file = scenario("browsing", size="1 MB", wifi=WIFI, lte=LTE)
    with proxied(tmp_path, file, url, ca=ca) as lab:
        over = ",".join(f"socks5://127.0.0.1:{lab.ports[name]}" for name in ("wifi", "lte"))
        begun = time.monotonic()
        done = ran(
            [http3 / "fetch", "-ca", ca, "-over", over, "-size", str(len(content)), inside(url)],
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - begun > len(content) / 2 * 8 / 10e6
        assert done.stdout.count("1500000 bytes, HTTP/3.0") == 2
        assert done.stdout.splitlines()[-1] == hashlib.sha256(content).hexdigest()


@needs_outside
@pytest.mark.one_at_a_time("rates")
def test_programs_inside_reach_an_origin_by_udp(
    linklab: Linklab, scenario: ScenarioFile, http3: Path, quic_server: tuple[str, Path, bytes]
) -> None:
    """Each half over a link, by HTTP/3."""
    url, ca, content = quic_server
    file = scenario("inside", size="1 MB", wifi=WIFI, lte=LTE)
    done = linklab(
        *("exec", file, "--place", "guest", "--origin", url, "--"),
        *(http3 / "fetch", "-ca", ca, "-over", "wlan0,rmnet0", "-size", len(content), inside(url)),
    )
    assert done.code == 0, done.err
    assert done.out.count("1500000 bytes, HTTP/3.0") == 2
    assert hashlib.sha256(content).hexdigest() in done.out


ASK = """
import socket
for host, port in (("198.51.100.1", 4433), ("198.51.100.1", 4434), ("192.0.2.2", 4433)):
    for device in ("wlan0", "rmnet0"):
        sock = socket.socket(type=socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        sock.settimeout(3)
        sock.sendto(b"question by " + device.encode(), (host, port))
        try:
            print(port, device, sock.recv(100).decode())
        except TimeoutError:
            print(port, device, "nothing")
"""

ANSWER = """
import socket, sys
for host, port in (("198.51.100.1", 4433), ("198.51.100.1", 4434), ("127.0.0.1", 4433)):
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind((host, port))
    if __import__("os").fork() == 0:
        while True:
            data, sender = sock.recvfrom(100)
            sock.sendto(data.replace(b"question", host.encode()), sender)
"""


@needs_outside
@pytest.mark.one_at_a_time("rates")
def test_the_outside_is_reached_by_udp_on_the_usual_ports_only(
    tmp_path: Path, scenario: ScenarioFile
) -> None:
    """A machine with a second address, which stands for the rest of the world. Its loopback device stays
    closed."""
    file = scenario("outside", size="1 MB", wifi=WIFI, lte=LTE)
    for name, content in (("ask.py", ASK), ("answer.py", ANSWER)):
        (tmp_path / name).write_text(content)
    exec_ = command(
        "exec", file, "--place", "guest", "--outside", "--", "python3", tmp_path / "ask.py"
    )
    script = (
        "ip link set lo up && ip address add 198.51.100.1/32 dev lo && "
        f"'{sys.executable}' answer.py && exec {shlex.join(exec_)}"
    )
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = ("unshare", *own_user, "--net", "--pid", "--mount-proc", "--fork", "--kill-child")
    done = finished(tmp_path, (*words, "sh", "-c", script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "4433 wlan0 198.51.100.1 by wlan0",
        "4433 rmnet0 198.51.100.1 by rmnet0",
        "4434 wlan0 nothing",
        "4434 rmnet0 nothing",
        "4433 wlan0 nothing",
        "4433 rmnet0 nothing",
    ]
    assert "by TCP and UDP over IPv4" in done.stderr


SERVE = """
import socket
sock = socket.socket(type=socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", 8000))
accepting = socket.create_server(("127.0.0.1", 8000))
while True:
    data, sender = sock.recvfrom(100)
    sock.sendto(data.upper(), sender)
"""

INSIDE = """
import socket
for device in ("wlan0", "rmnet0"):
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.settimeout(3)
    sock.sendto(device.encode(), ("10.0.1.1", 8000))
    print(*sock.recvfrom(100))
"""


@pytest.mark.one_at_a_time("rates")
def test_an_origin_is_reached_by_udp_on_the_host_too(
    tmp_path: Path, linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("ashore", size="1 MB", wifi=WIFI, lte=LTE)
    for name, content in (("serve.py", SERVE), ("inside.py", INSIDE)):
        (tmp_path / name).write_text(content)
    script = (
        f"'{sys.executable}' '{tmp_path}/serve.py' & {LISTENS}"
        " $linklab exec $scenario --place host --origin http://127.0.0.1:8000/"
        f" --out /tmp/inner -- '{sys.executable}' '{tmp_path}/inside.py'"
    )
    done = linklab("exec", file, "--clock", "real", "--", *nested(script, file))
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "b'WLAN0' ('10.0.1.1', 8000)",
        "b'RMNET0' ('10.0.1.1', 8000)",
    ]
