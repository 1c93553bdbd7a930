"""Tests connections of a lab to the outside, behind its links, on the real clock, in the guest and
on the host."""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import Called, Linklab, ScenarioFile, command, environment, until, whole_lines
from free_ports import free_ports
from host_place_test import LISTENS, nested
from through_the_lab import PATIENCE_S, answers, fetched, inside, needs_outside, proxied, served

pytestmark = [
    pytest.mark.one_at_a_time("rates"),
    needs_outside,
]

WIFI, LTE = (
    "down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms",
    "down: 25 Mbit/s, up: 10 Mbit/s, rtt: 30 ms",
)
SIZE = 5_000_000
CONTENT = hashlib.shake_128(b"file").digest(SIZE)


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[str]:
    """Starts a user's server on this machine. Yields its URL of a file."""
    directory = tmp_path / "served"
    directory.mkdir()
    (directory / "file").write_bytes(CONTENT)
    with served(directory) as url:
        yield f"{url}file"


def digests(done: Called) -> list[tuple[str, float]]:
    """Returns what `FETCH` printed: digests and durations."""
    lines = [line.split() for line in done.out.splitlines()]
    return [(digest, float(elapsed_s)) for digest, elapsed_s in lines]


FETCH = (
    "for device in wlan0 rmnet0; do"
    " took=$(curl -sSf -o /tmp/got --interface $device -w '%{time_total}' {origin});"
    ' echo "$(sha256sum < /tmp/got | cut -c-64) $took"; done'
)


def test_a_server_of_this_machine_is_behind_the_links_and_nothing_else(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    """Neither another port of this machine, nor another address, nor names."""
    file = scenario("behind", size="1 MB", wifi=WIFI, lte=LTE)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        script = (
            f"{FETCH}; for url in http://10.0.1.1:{port}/ http://192.0.2.2:{port}/"
            " http://192.0.2.1:80/; do curl -sS -m 3 -o /dev/null $url && echo reached; done; true"
        )
        done = linklab(
            "exec", file, "--place", "guest", "--origin", origin, "--", "sh", "-c", script
        )
    assert done.code == 0, done.err
    assert "behind the links: http://10.0.1.1:" in done.err
    wanted = hashlib.sha256(CONTENT).hexdigest()
    (wifi, wifi_s), (lte, lte_s) = digests(done)
    assert (wifi, lte) == (wanted, wanted)
    assert wifi_s > SIZE * 8 / 60e6
    assert lte_s > SIZE * 8 / 25e6


def test_links_of_ipv6_alone_reach_a_server_of_this_machine_too(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    """It has an address of each family in the lab, and a name. Beyond, the relay uses IPv4."""
    wifi, lte = f"{WIFI}, ip: 4", f"{LTE}, ip: 6"
    file = scenario("families", size="1 MB", wifi=wifi, lte=lte, more="network: {ip: both}\n")
    done = linklab("exec", file, "--place", "guest", "--origin", origin, "--", "sh", "-c", FETCH)
    assert done.code == 0, done.err
    assert "behind the links: http://origin-1.linklab:" in done.err
    wanted = hashlib.sha256(CONTENT).hexdigest()
    (wifi_file, wifi_s), (lte_file, lte_s) = digests(done)
    assert (wifi_file, lte_file) == (wanted, wanted)
    assert wifi_s > SIZE * 8 / 60e6
    assert lte_s > SIZE * 8 / 25e6


def test_proxies_from_outside_use_the_family_of_each_link(
    tmp_path: Path, scenario: ScenarioFile, origin: str
) -> None:
    wifi, lte = f"{WIFI}, ip: 4", f"{LTE}, ip: 6"
    file = scenario("families", size="1 MB", wifi=wifi, lte=lte, more="network: {ip: both}\n")
    with proxied(tmp_path, file, origin, host="origin-1.linklab") as lab:
        for link in ("wifi", "lte", ""):
            for scheme in ("http", "socks5h"):
                part = fetched(lab.origin, lab.proxy(link, scheme), "-r", "0-499999")
                assert part == CONTENT[:500_000], (link, scheme)
        assert lab.linklab("link", "wifi", "carrier", "down") == "wifi: carrier down\n"
        events = [one["kind"] for one in whole_lines(lab.run_dir() / "events.jsonl")]
        assert "carrier-down" in events  # So no new connection is over Wi-Fi.
        assert fetched(lab.origin, lab.proxy("", "socks5h")) == CONTENT


def test_an_origin_has_one_of_the_usual_ports(
    tmp_path: Path, linklab: Linklab, scenario: ScenarioFile
) -> None:
    """--outside opens each of these ports for all other addresses."""
    (tmp_path / "file").write_bytes(CONTENT)
    port = next(port for port in (8888, 3000, 5000, 9000) if not answers(port))
    file = scenario("usual", size="1 MB", wifi=WIFI, lte=LTE)
    with served(tmp_path, port) as url:
        wanted = ("exec", file, "--place", "guest", "--outside", "--origin", f"{url}file")
        done = linklab(*wanted, "--", "sh", "-c", FETCH)
    assert done.code == 0, done.err
    content = hashlib.sha256(CONTENT).hexdigest()
    assert [digest for digest, _ in digests(done)] == [content, content]


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Sets linklab's temporary directory, with a short path for sockets."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    shutil.rmtree(directory)


def nothing_is_left(family: list[psutil.Process], temporary: Path) -> None:
    """Asserts that no process and no directory is left once linklab has ended."""
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert list(temporary.iterdir()) == []


def family_of(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    whole = psutil.Process(process.pid)
    return [whole, *whole.children(recursive=True)]


def test_others_download_through_a_live_lab(
    tmp_path: Path, temporary: Path, scenario: ScenarioFile, origin: str
) -> None:
    """By HTTP and SOCKS5, over all links and over one, with a link that goes away. Nothing is left."""
    file = scenario("watched", size="1 MB", wifi=WIFI, lte=LTE)
    url = inside(origin)
    with proxied(tmp_path, file, origin) as lab:
        assert f"proxy over lte: {lab.proxy('lte')} (HTTP and SOCKS5)" in lab.said()
        assert "nobody: the links are there for others" in lab.said()
        assert lab.status()["running"] == "nobody"
        for scheme in ("http", "socks5h"):
            begun = time.monotonic()
            assert fetched(url, lab.proxy("lte", scheme)) == CONTENT
            least_s, took_s = SIZE * 8 / 25e6, time.monotonic() - begun
            assert took_s > least_s
            assert took_s < 1.4 * least_s or "CANNOT KEEP UP" in lab.said()
        assert lab.linklab("link", "wifi", "carrier", "down") == "wifi: carrier down\n"
        assert fetched(url, lab.proxy("wifi"), "-m", "3") is None
        assert fetched(url, lab.proxy("", "socks5h")) == CONTENT
        assert lab.linklab("link", "wifi", "carrier", "up") == "wifi: carrier up\n"
        assert fetched(url, lab.proxy("wifi"), "--retry", "5", "--retry-all-errors") == CONTENT
        assert (
            "linklab_link_up"
            in urllib.request.urlopen(f"http://{lab.address}/metrics").read().decode()
        )
        family = family_of(lab.process)
        assert lab.end() == 130
        nothing_is_left(family, temporary)
        assert not any(map(answers, lab.ports.values()))


def connected(runs: Path) -> bool:
    """Tells whether a run of alg3 has opened a connection."""
    logs = runs.glob("*/*alg3*/client.jsonl")
    return any('"event":"connected"' in log.read_text() for log in logs)


def test_algorithms_take_turns_beside_what_comes_through_the_proxy(
    tmp_path: Path, scenario: ScenarioFile, origin: str
) -> None:
    slow = "down: 8 Mbit/s, up: 2 Mbit/s, rtt: 20 ms"
    file = scenario("shared", size="40 MB", wifi=slow, lte=slow)
    with proxied(tmp_path, file, origin, "-a", "alg3,alg1") as lab:
        assert lab.status()["algorithms"] == ["alg3", "alg1"]
        assert fetched(inside(origin), lab.proxy("lte"), "-r", "0-99999") == CONTENT[:100_000]
        # The proxy answers before the algorithm's client begins.
        until(lambda: connected(tmp_path / "runs"), "alg3 never connected")


def test_a_lab_that_dies_in_mid_stream(
    tmp_path: Path, temporary: Path, scenario: ScenarioFile, origin: str
) -> None:
    """The downloading program gets an error, one line reports the lab's end, and nothing is left."""
    slow = scenario("mortal", size="1 MB", wifi=LTE.replace("25", "8"), lte=LTE.replace("25", "8"))
    first = free_ports(3)
    lab = subprocess.Popen(
        command(
            *("exec", slow, "--place", "guest", "--origin", origin),
            *("--listen-proxy", first, "--", "sleep", "600"),
        ),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    proxy = f"http://127.0.0.1:{first}"
    until(lambda: fetched(inside(origin), proxy, "-r", "0-9"), process=lab)
    family = family_of(lab)
    with subprocess.Popen(
        ["curl", "-sS", "-o", tmp_path / "part", "-x", proxy, inside(origin)],
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        part = tmp_path / "part"
        until(lambda: part.exists() and part.stat().st_size > 0, "nothing came")
        assert client.poll() is None
        kernels = [one for one in family if one.name().startswith("linux-")]
        assert kernels, [one.name() for one in family]
        kernels[0].kill()
        assert client.wait(timeout=PATIENCE_S) != 0
    said = lab.communicate(timeout=PATIENCE_S)[1]
    assert lab.returncode == 1
    assert 0 < (tmp_path / "part").stat().st_size < SIZE
    (error,) = [line for line in said.splitlines() if line.startswith("linklab: ")]
    assert "the guest" in error
    nothing_is_left(family, temporary)
    assert not any(answers(first + number) for number in range(3))


def test_of_many_at_a_time_each_comes_whole_and_none_stays(
    tmp_path: Path, scenario: ScenarioFile, origin: str
) -> None:
    """Over each way, by HTTP and SOCKS5: downloads, uploads, and such as are broken off."""
    sent = tmp_path / "sent"
    sent.write_bytes(CONTENT[:300_000])
    file = scenario("crowd", size="1 MB", wifi=WIFI, lte=LTE)
    with proxied(tmp_path, file, origin) as lab:
        url = lab.origin

        def open_files() -> int:
            return sum(one.num_fds() for one in family_of(lab.process))

        def is_right(number: int) -> bool:
            proxy = lab.proxy(("", "wifi", "lte")[number % 3], ("http", "socks5h")[number % 2])
            if number // 6 % 4 == 0:
                return fetched(url, proxy, "-m", "0.3") is None
            if number // 6 % 4 == 1:
                upload = url.replace("/file", f"/sum?{number}")
                said = fetched(upload, proxy, "--data-binary", f"@{sent}") or b"{}"
                digest = hashlib.sha256(CONTENT[:300_000]).hexdigest()
                return bool(json.loads(said) == {"bytes": 300_000, "sha256": digest})
            return fetched(url, proxy, "-r", "0-299999") == CONTENT[:300_000]

        before = open_files()
        with ThreadPoolExecutor(8) as requests:
            found = list(requests.map(is_right, range(96)))
        assert [number for number, right in enumerate(found) if not right] == []
        # The proxies keep some idle connections for 90 s. Of the requests 24 were broken off.
        until(lambda: open_files() <= before + 16, "a connection stayed")


def test_an_origin_of_a_live_lab_needs_a_way_to_it(
    linklab: Linklab, scenario: ScenarioFile, origin: str
) -> None:
    done = linklab("live", scenario("useless", size="1 MB"), "--origin", origin)
    assert (done.code, done.out) == (2, "")
    assert "--origin and --outside need --listen-proxy" in done.err


def test_the_host_place_has_an_outside_too(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("hosted", size="1 MB", wifi=WIFI, lte=LTE)
    fetch = FETCH.replace("'", "'\\''")
    script = (
        "mkdir -p /tmp/www; head -c 5000000 /dev/zero > /tmp/www/file;"
        f" '{sys.executable}' -m http.server 8000 --bind 127.0.0.1 -d /tmp/www >/dev/null 2>&1 &"
        f" {LISTENS} $linklab exec $scenario --place host --origin http://127.0.0.1:8000/file"
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
