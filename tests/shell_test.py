"""Tests `linklab shell`: a user at a terminal in the lab, on the real clock."""

import json
import re
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from conftest import Linklab, ScenarioFile, called, lines
from free_ports import free_port
from linklab.core.paths import cache_dir
from user_terminal import PATIENCE_S, UserTerminal

pytestmark = pytest.mark.one_at_a_time

PROMPT = r"\[linklab \w+ client\] [^\r\n]*[#$] "


@pytest.fixture
def listen() -> str:
    """Returns a free address."""
    return f"127.0.0.1:{free_port()}"


def pressed(user: UserTerminal, key: str, pattern: str) -> None:
    """Presses a key until it has an effect. Before a program has the terminal, the shell gets the
    keys, and must ignore this one."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        user.type(key)
        try:
            user.expect(pattern, 1.0)
            return
        except AssertionError:
            if time.monotonic() > deadline:
                raise


def test_a_shell_is_a_terminal_like_any(
    tmp_path: Path, scenario: ScenarioFile, listen: str
) -> None:
    """Prompt, size, Ctrl-C, jobs, available programs, a link that goes, the exit code."""
    file = scenario("ashore", size="1 MB")
    with UserTerminal(tmp_path, "shell", file, "--listen", listen, rows=30, columns=100) as user:
        user.expect(PROMPT)
        user.type("stty size; pwd\n")
        user.expect("30 100\r\n")
        user.expect(f"{tmp_path}\r\n")
        user.resize(40, 120)
        user.type("stty size\n")
        user.expect("40 120\r\n")

        # Bash ends at a Ctrl-C before the program has the terminal: the program may take it later.
        user.type("sh -c 'echo re''ady; exec sleep 600'\n")
        user.expect("ready\r\n")
        user.type("\x03")
        user.expect(PROMPT)
        user.type("echo code $?\n")
        user.expect("code 130\r\n")
        user.type("sleep 600 &\n")
        user.expect(r"\[1\] \d+\r\n")
        user.type("fg\n")
        user.expect("\rsleep 600\r\n")
        pressed(user, "\x1a", r"\[1\]\+ +Stopped")
        user.type("kill %1; wait; echo gone\n")
        user.expect(r"[\r\n]gone\r\n")

        user.type(
            "multilink get $LINKLAB_URL --link wifi=wlan0 --ca-file $LINKLAB_CA -o /tmp/got\n"
        )
        user.expect(PROMPT)
        user.type("sha256sum < /tmp/got; echo $LINKLAB_SHA256\n")
        digest = re.findall(r"[0-9a-f]{64}", user.expect(r"[0-9a-f]{64}[^0-9a-f]+[0-9a-f]{64}"))
        assert digest[0] == digest[1]

        done = called(tmp_path, "link", "wifi", "carrier", "down", "--live", listen)
        assert done.returncode == 0, done.stderr
        user.type(
            "until grep -q down /sys/class/net/wlan0/operstate; do sleep .1; done; echo off\n"
        )
        user.expect(r"[\r\n]off\r\n")

        user.type("exit 7\n")
        assert user.end() == 7
    (run_dir,) = (tmp_path / "runs").iterdir()
    assert json.loads((run_dir / "outcome.json").read_text())["exit_code"] == 7
    assert any(not line["up"] for line in lines(run_dir / "links.jsonl") if line["link"] == "wifi")


def test_a_shell_begins_elsewhere_than_among_secrets(
    tmp_path: Path, scenario: ScenarioFile, listen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = scenario("secret", size="1 MB")
    monkeypatch.setenv("LINKLAB_CACHE", str(cache_dir()))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, is_seen in ((".ssh", False), (".", True)):
        here = (tmp_path / name).resolve()
        here.mkdir(exist_ok=True)
        (here / "file").touch()
        words = ("shell", file, "--listen", listen, "--place", "guest", "--out", tmp_path / "runs")
        script = f"[ $PWD = {here} ] && echo stays; [ -e {here}/file ] || echo hidden"
        with UserTerminal(here, *words, "--", "sh", "-c", script, columns=300) as user:
            user.expect(f"{here}, where you stand, is hidden in the guest")
            user.expect("stays\r\nhidden\r\n" if is_seen else "[\r\n]hidden\r\n")
            assert user.end() == 0


def test_much_is_typed_and_shown(tmp_path: Path, scenario: ScenarioFile, listen: str) -> None:
    """More than any buffer on the way holds, both ways, every byte once, on the server host. Later
    input passes, too."""
    file = scenario("pasted", size="1 MB")
    script = (
        "stty -echo; echo go; head -n 5000 | sha256sum; seq 60000 | cat;"
        " read word; echo got $word; exit 3"
    )
    pasted = "".join(f"{number} and so on, and so on\n" for number in range(5000))
    with UserTerminal(
        tmp_path, "shell", file, "--listen", listen, "--on", "server", "--", "sh", "-c", script
    ) as user:
        user.expect("go\r\n")
        user.type(pasted)
        said = user.expect("\n60000\r\n").split()
        user.type("more\n")
        user.expect("got more\r\n")
        assert user.end() == 3
    digest = subprocess.run(["sha256sum"], input=pasted.encode(), capture_output=True, check=True)
    assert said[0] == digest.stdout.decode().split()[0]
    assert said[2:] == [str(number) for number in range(1, 60001)]


def test_nothing_is_left_when_the_terminal_dies(
    tmp_path: Path, scenario: ScenarioFile, listen: str
) -> None:
    file = scenario("window", size="1 MB")
    with UserTerminal(tmp_path, "shell", file, "--listen", listen) as user:
        user.expect(PROMPT)
        user.type("(trap '' HUP; sleep 600) &\n")
        user.expect(r"\[1\] \d+\r\n")
        whole = psutil.Process(user.process.pid)
        family = [whole, *whole.children(recursive=True)]
        assert len(family) > 2, "a guest, or a lab of its own"
        user.die()
        user.process.wait(timeout=PATIENCE_S)
        _, alive = psutil.wait_procs(family, timeout=10)
        assert alive == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(listen.rpartition(":")[2]))) != 0


def test_what_cannot_be_is_one_error_and_leaves_nothing(
    tmp_path: Path, linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("refused", size="1 MB")
    done = linklab("shell", file)
    assert done.code == 2
    assert "a shell needs a terminal for input and output; without one: linklab exec" in done.err
    with UserTerminal(tmp_path, "shell", file, rows=24, columns=12) as user:
        user.expect("the terminal is too small: 12 columns")
        assert user.end() == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with UserTerminal(tmp_path, "shell", file, "--listen", f"127.0.0.1:{port}") as user:
            user.expect(f"cannot listen on 127.0.0.1:{port}: Address already in use")
            assert user.end() == 2
    assert not (tmp_path / "runs").exists()


def test_a_lab_that_cannot_be_built_is_said(
    tmp_path: Path, scenario: ScenarioFile, listen: str
) -> None:
    file = scenario("unserved", size="1 MB")
    with UserTerminal(
        tmp_path, "shell", file, "--listen", listen, "--server", "false", columns=200
    ) as user:
        user.expect("the server ended with 1 and never listened on port 443")
        assert user.end() == 1
