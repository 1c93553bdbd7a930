"""What lies outside a lab, behind its links: on the real clock, in the guest and on the host."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Called, Linklab, command, environment
from host_place_test import nested
from linklab.places.guest import gateway

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(gateway.obstacle() is not None, reason=str(gateway.obstacle())),
]

ScenarioFile = Callable[..., Path]

WIFI, LTE = (
    "down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms",
    "down: 25 Mbit/s, up: 10 Mbit/s, rtt: 30 ms",
)
SIZE = 5_000_000
PATIENCE_S = 60.0


@pytest.fixture
def port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture
def origin(tmp_path: Path, port: int) -> Iterator[str]:
    """A server of the user's on this machine; its URL of a file."""
    directory = tmp_path / "served"
    directory.mkdir()
    (directory / "file").write_bytes(hashlib.shake_128(b"file").digest(SIZE))
    process = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", directory],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE_S
    while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield f"http://localhost:{port}/file"
    process.kill()
    process.wait()


def digests(done: Called) -> list[tuple[str, float]]:
    """What `FETCH` printed: what came and how long it took."""
    lines = [line.split() for line in done.out.splitlines()]
    return [(digest, float(elapsed_s)) for digest, elapsed_s in lines]


FETCH = (
    "for device in wlan0 rmnet0; do"
    " took=$(curl -sSf -o /tmp/got --interface $device -w '%{time_total}' {origin});"
    ' echo "$(sha256sum < /tmp/got | cut -c-64) $took"; done'
)


def test_a_server_of_this_machine_is_behind_the_links(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    file = scenario("behind", size="1 MB", wifi=WIFI, lte=LTE)
    done = linklab("exec", file, "--place", "guest", "--origin", origin, "--", "sh", "-c", FETCH)
    assert done.code == 0, done.err
    assert "behind the links: http://10.0.1.1:" in done.err
    wanted = hashlib.sha256(hashlib.shake_128(b"file").digest(SIZE)).hexdigest()
    (wifi, wifi_s), (lte, lte_s) = digests(done)
    assert (wifi, lte) == (wanted, wanted)
    assert wifi_s > SIZE * 8 / 60e6
    assert lte_s > SIZE * 8 / 25e6


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("port", [next(port for port in (8888, 3000, 5000, 9000) if is_free(port))])
def test_an_origin_has_one_of_the_usual_ports(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    """Of which --outside opens each for all other addresses."""
    file = scenario("usual", size="1 MB", wifi=WIFI, lte=LTE)
    wanted = ("exec", file, "--place", "guest", "--outside", "--origin", origin)
    done = linklab(*wanted, "--", "sh", "-c", FETCH)
    assert done.code == 0, done.err
    content = hashlib.sha256(hashlib.shake_128(b"file").digest(SIZE)).hexdigest()
    assert [digest for digest, _ in digests(done)] == [content, content]


def test_only_what_was_asked_for_is_opened(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    """Neither another port of this machine, nor another address, nor names."""
    file = scenario("closed", size="1 MB")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        script = (
            f"for url in http://10.0.1.1:{port}/ http://192.0.2.2:{port}/ http://192.0.2.1:80/;"
            " do curl -sS -m 3 -o /dev/null $url && echo reached; done; echo done"
        )
        done = linklab(
            "exec", file, "--place", "guest", "--origin", origin, "--", "sh", "-c", script
        )
    assert done.out == "done\n"


def test_a_proxy_leads_into_the_lab(tmp_path: Path, scenario: ScenarioFile, origin: str) -> None:
    file = scenario("proxied", size="1 MB", wifi=WIFI, lte=LTE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lab = subprocess.Popen(
        command(
            "exec", file, "--place", "guest", "--origin", origin, "--listen-proxy", port, "--",
            "sleep", "600",
        ),
        cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        inside = origin.replace("localhost", "10.0.1.1")

        def fetch(port: int) -> bytes | None:
            done = subprocess.run(
                ["curl", "-sSf", "-m", "20", "-x", f"http://127.0.0.1:{port}", inside],
                capture_output=True, check=False,
            )  # fmt: skip
            return done.stdout if done.returncode == 0 else None

        deadline = time.monotonic() + PATIENCE_S
        while (content := fetch(port)) is None:
            assert lab.poll() is None, lab.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.5)
        wanted = hashlib.shake_128(b"file").digest(SIZE)
        assert content == wanted
        begun = time.monotonic()
        assert fetch(port + 2) == wanted
        assert time.monotonic() - begun > SIZE * 8 / 25e6
    finally:
        lab.terminate()
        said = lab.communicate(timeout=PATIENCE_S)[1]
    assert f"proxy over lte: http://127.0.0.1:{port + 2}" in said
    assert fetch(port) is None, "it is gone with the lab"


def test_the_host_place_has_an_outside_too(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("hosted", size="1 MB", wifi=WIFI, lte=LTE)
    fetch = FETCH.replace("'", "'\\''")
    script = (
        "mkdir -p /tmp/www; head -c 5000000 /dev/zero > /tmp/www/file;"
        f" {sys.executable} -m http.server 8000 --bind 127.0.0.1 -d /tmp/www >/dev/null 2>&1 &"
        " sleep 3; $linklab exec $scenario --place host --origin http://127.0.0.1:8000/file"
        f" --out /tmp/inner -- sh -c '{fetch}'"
    )
    done = linklab("exec", file, "--clock", "real", "--", *nested(script, file))
    assert done.code == 0, done.err
    (wifi, wifi_s), (lte, lte_s) = digests(done)
    assert wifi == lte == hashlib.sha256(bytes(SIZE)).hexdigest()
    assert wifi_s > SIZE * 8 / 60e6
    assert lte_s > SIZE * 8 / 25e6


def test_there_is_no_outside_in_virtual_time(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    file = scenario("timeless", size="1 MB")
    done = linklab("exec", file, "--clock", "virtual", "--origin", origin, "--", "true")
    assert done.code == 2
    assert "what is outside goes by the real clock" in done.err
    plain = linklab("exec", file, "--", "sh", "-c", "ls /sys/class/net")
    assert "vec0" not in plain.out
