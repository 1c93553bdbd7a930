"""Tests that no other user of the machine takes over a lab that starts: beside `linklab.live`, `linklab
serve` and Go's `linklabtest`."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import linklab
import port_thief
import pytest
from conftest import ran
from go_package_test import CLIENT, PACKAGE, go
from go_package_test import program as program
from http_api_test import Serving
from http_api_test import server as server
from linklab.lab.kernel import namespace
from python_api_test import SMALL
from through_the_lab import fetched, needs_outside, served

pytestmark = [
    pytest.mark.one_at_a_time,
    needs_outside,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user's program run"),
]

NOBODY = 65534
CONTENT = b"from behind the links"
START_S, LOOK_S = 60.0, 0.1


class Thief:
    """A running thief."""

    def __init__(self, said: Path) -> None:
        self._said = said

    def got(self) -> str:
        """Returns what programs sent to it."""
        return self._said.read_text()


@pytest.fixture(autouse=True)
def own_network() -> Iterator[None]:
    """Moves the test, and what it starts, into a network of its own. A thief takes every port that is
    given back, also those of tests beside this one."""
    network = namespace.new_network()
    with namespace.inside(network):
        os.close(network)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield


@pytest.fixture
def thief(tmp_path: Path) -> Iterator[Thief]:
    """Starts a thief of another user, whose victims are this process' descendants. It has shown that
    it takes a port."""
    with tempfile.TemporaryDirectory(prefix="thief-", dir="/tmp") as directory:
        seen = Path(directory) / "port_thief.py"  # Nobody may be unable to read the checkout.
        seen.write_text(Path(port_thief.__file__).read_text())
        seen.parent.chmod(0o755)
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(
                [os.path.realpath(sys.executable), "-I", seen, str(os.getpid())],
                stdout=said,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
            )
        try:
            show_bait()
            yield Thief(tmp_path / "said")
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def show_bait() -> None:
    """Waits until the thief has taken a port that was given back."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with socket.create_server(("127.0.0.1", 0)) as bait:
            port = bait.getsockname()[1]
            time.sleep(LOOK_S)
        time.sleep(LOOK_S)
        if port in port_thief.listened():
            return
    raise AssertionError("the thief takes no port")


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[str]:
    """Starts a user's server on this machine. Yields its URL of a file."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(CONTENT)
    with served(tmp_path / "served") as url:
        yield f"{url}file"


def test_beside_python(tmp_path: Path, origin: str, thief: Thief) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    with linklab.live(tmp_path / "small.yaml", origin=origin, out=tmp_path / "runs") as lab:
        assert fetched(lab.origin, lab.proxy) == CONTENT
        assert fetched(lab.origin, lab.proxies["lte"]) == CONTENT
        lab.link("wifi").set(carrier="down")
        assert lab.status()["now"]["links"]["wifi"]["up"] is False
        assert thief.got() == ""


def test_beside_the_http_api(server: Serving, origin: str, thief: Thief) -> None:
    status, lab = server.ask("POST", "/lab", {"scenario": "small.yaml", "origins": [origin]})
    assert status == 201, lab
    assert fetched(lab["origins"][0], f"http://127.0.0.1:{lab['proxy_port']}") == CONTENT
    status, link = server.ask("PATCH", "/lab/links/wifi", {"down": "2 Mbit/s"})
    assert (status, link["down"]) == (200, "2 Mbit/s")
    assert thief.got() == ""
    assert server.ask("DELETE", "/lab")[0] == 204


def test_beside_go(program: Path, tmp_path: Path, thief: Thief) -> None:
    """The package's own tests compare every byte, and links are changed, with linklab's answers."""
    tested = tmp_path / "tested"
    go(CLIENT, "test", "-c", "-o", tested, "./linklabtest")
    done = ran(
        [
            tested,
            "-test.run",
            "^Test(LinksAreUsed|MistakesHaveTheTextsOfLinklab)$",
            "-test.count",
            "1",
        ],
        cwd=PACKAGE,
        env={**os.environ, "LINKLAB": str(program)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert thief.got() == ""


def test_a_lab_that_has_ended_has_left_no_token_to_be_told(tmp_path: Path) -> None:
    """A thief has the port of a lab that was killed. It learns no token, and its answer is refused."""
    (tmp_path / "small.yaml").write_text(SMALL)
    with linklab.live(tmp_path / "small.yaml", out=tmp_path / "runs") as lab:
        link, token = lab.link("wifi"), lab._process.token
    port_thief.take(lab._address[1])
    heard: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda text, **_: heard.append(text))
        with pytest.raises(linklab.LinklabError, match="no live lab"):
            link.set(carrier="down")
    port_thief.taken[lab._address[1]].close()
    assert heard
    assert not any(token in one for one in heard)
