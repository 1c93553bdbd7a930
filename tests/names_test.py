"""Tests that the user's programs resolve the lab's own names at once, whatever the machine's
resolver is."""

import json
import os
import shlex
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, Linklab, ScenarioFile, command, finished, lines, succeeded
from host_place_test import nested
from linklab.core.paths import MULTILINK

PROBE = shlex.join([sys.executable, str(PROBES / "lookups.py")])
AT_ONCE_S = 0.001
PCAP_HEAD_BYTES = 24

SAID = {
    "own name": "linklab",
    "python server": "10.0.0.1",
    "getent server": "0 10.0.0.1 server.linklab server",
    "socket server": "4711 0 10.0.0.1",
    "python server.linklab": "10.0.0.1",
    "getent server.linklab": "0 10.0.0.1 server.linklab server",
    "socket server.linklab": "4711 0 10.0.0.1",
    "python linklab": "127.0.1.1",
    "getent linklab": "0 127.0.1.1 linklab",
    "socket linklab": "4711 0 127.0.1.1",
    "python localhost": "127.0.0.1",
    "getent localhost": "0 127.0.0.1 localhost",
    "socket localhost": "4711 0 127.0.0.1",
    "python nothing.example": "gaierror -2",
    "getent nothing.example": "2",
    "socket nothing.example": "4711 3 none",
    "who is 10.0.0.1": "server.linklab",
    "who is 10.1.0.1": "herror 1",
    "curl": "6",
}
"""The results that `lookups.py` prints: EAI_NONAME is -2, HOST_NOT_FOUND 1, curl's "could not
resolve" 6."""


def told(found: list[Any]) -> dict[str, str]:
    return {one["who"]: one["said"] for one in found}


@pytest.fixture
def on(tmp_path: Path) -> Callable[..., Any]:
    """Calls `linklab` on a machine with other files in /etc. None is a missing file."""

    def call(files: dict[str, str | None], *arguments: object) -> Any:
        upper, work = tmp_path / "upper", tmp_path / "work"
        for directory in (upper, work):
            directory.mkdir()
        for name, text in files.items():
            if text is None:
                os.mknod(upper / name, stat.S_IFCHR)  # Overlayfs marks a deleted file so.
            elif text.startswith("-> "):
                (upper / name).symlink_to(text.removeprefix("-> "))
            else:
                (upper / name).write_text(text)
        options = f"lowerdir=/etc,upperdir={upper},workdir={work}"
        script = f'mount -t overlay -o {options} etc /etc && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", script, "sh", *command(*arguments)]
        done = finished(tmp_path, words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


MACHINES: dict[str, dict[str, str | None]] = {
    "a server that does not answer": {"resolv.conf": "nameserver 192.0.2.1\nsearch example\n"},
    "systemd-resolved": {
        "resolv.conf": "-> ../run/systemd/resolve/stub-resolv.conf",
        "nsswitch.conf": "hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns\n",
        "hosts": "192.0.2.9 server nothing.example\n",
        "hostname": "machine.example.org\n",
    },
    "no files": {"resolv.conf": None, "nsswitch.conf": None, "hosts": None, "hostname": None},
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lays other files over the machine's")
@pytest.mark.parametrize("files", MACHINES.values(), ids=MACHINES)
def test_names_are_the_same_on_every_machine(
    on: Callable[..., Any], scenario: ScenarioFile, files: dict[str, str | None]
) -> None:
    done = on(files, "exec", scenario("names"), "--json", "--", *shlex.split(PROBE))
    found = lines(Path(done["run_dir"]) / "client.out")
    assert told(found) == SAID
    assert max(one["took_s"] for one in found) < AT_ONCE_S


def test_no_question_leaves_for_a_link(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Neither from the client host nor from the server host."""
    probe = f"{PROBE} {shlex.quote(str(MULTILINK))}"
    run_dir = succeeded(
        linklab,
        *("exec", scenario("quiet"), "--pcap", "all"),
        *("--port", 8080, "--server", f"{probe} {{port}}", "--", *shlex.split(probe)),
    ).run_dir
    for output in ("client.out", "server.out"):
        *found, by_multilink = lines(run_dir / output)[: len(SAID) + 1]
        assert told(found) == SAID
        assert max(one["took_s"] for one in found) < AT_ONCE_S
        assert by_multilink["said"] == "no such host"
    outcome = json.loads((run_dir / "outcome.json").read_text())
    assert set(outcome["sent_bytes"].values()) == set(outcome["received_bytes"].values()) == {0}
    assert [path.stat().st_size for path in run_dir.glob("*.pcap")] == [PCAP_HEAD_BYTES] * 2


def test_the_server_is_found_by_the_name_in_its_certificate(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    fetch = "curl -sSf -o {output} https://server.linklab/$(basename {url})"
    done = succeeded(linklab, "exec", scenario("named"), "--", "sh", "-c", fetch)
    assert done.json["error"] is None


def test_a_name_server_may_be_what_is_tried(linklab: Linklab, scenario: ScenarioFile) -> None:
    """It listens on all addresses of the server host."""
    serve = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 53))\n"
        "while True: s.sendto(b'mine', s.recvfrom(99)[1])"
    )
    ask = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(1)\n"
        "s.sendto(b'?', ('10.0.0.1', 53)); print(s.recv(99))"
    )
    done = succeeded(
        linklab,
        *("exec", scenario("served"), "--port", 53),
        *("--server", shlex.join([sys.executable, "-c", serve]), "--", sys.executable, "-c", ask),
    )
    assert (done.run_dir / "client.out").read_text() == "b'mine'\n"


NSCD = """
import os, socket
os.makedirs("/var/run/nscd")
nscd = socket.socket(socket.AF_UNIX)
nscd.bind("/var/run/nscd/socket")
nscd.listen()
socket.sethostname("machine")
while True:
    nscd.accept()[0].close()
    open("/tmp/asked", "w").close()
"""


def test_the_host_place_has_the_same_names(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Also on a machine with an nscd, which glibc asks first. The machine's own name and the mounts
    in its /etc stay."""
    file = scenario("hosted", size="1 MB")
    script = (
        f"'{sys.executable}' -c {shlex.quote(NSCD)} & sleep 1; getent hosts a; rm /tmp/asked;"
        " mount -t tmpfs none /etc/ssl; touch /etc/ssl/mine;"
        " mkdir '/tmp/a:b,c'; export TMPDIR='/tmp/a:b,c';"
        " $linklab exec $scenario --place host --out /run/linklab/run/inner --"
        f" sh -c {shlex.quote(f'test -e /etc/ssl/mine && {PROBE}')} && ! test -e /tmp/asked"
        " && test $(uname -n) = machine"
    )
    done = linklab("exec", file, "--json", "--", *nested(script, file))
    run_dir = done.run_dir
    assert done.json["exit_code"] == 0, (run_dir / "client.err").read_text()
    (inner,) = (run_dir / "inner").iterdir()
    found = lines(inner / "client.out")
    assert told(found) == SAID
    assert max(one["took_s"] for one in found) < 1.0
