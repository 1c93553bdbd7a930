"""Tests every command that prints untrusted text: no terminal obeys a word of it."""

import http.server
import itertools
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import environment, ran
from hostile_runs import HOSTILE, changed, changes, whole_run
from hostile_runs_test import COMMANDS, command
from linklab.commands import cli

WORDS = "\x1b]0;owned\x07\x9b2J\u202e\u2066\u2028[/x]"

SCENARIO = f"""name: drive
title: {json.dumps(WORDS)}
description: {json.dumps(WORDS)}
source: {json.dumps(WORDS)}
payload: {{size: 1 MB}}
links:
  wifi: {{down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}}
  lte: {{down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}}
"""

ONE_IN = 60
"""One in this many combinations of place and command is tried."""


def refuse_commands(capsys: pytest.CaptureFixture[str], what: object) -> str:
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert said.replace("\n", "").replace("\t", "").isprintable(), (what, said)
    return said


@contextmanager
def live_lab(answer: dict[str, Any]) -> Iterator[str]:
    """Runs a server that answers every command like this. Yields its address."""

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize("key", ["error", "done"])
def test_answers_of_a_live_lab(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    with live_lab({key: WORDS}) as address:
        for words in (["next"], ["link", "wifi", "carrier", "down"]):
            assert cli.main([*words, "--live", address]) == 2
            # It has not proved to be the lab, so nothing of its answer is printed.
            assert "owned" not in refuse_commands(capsys, words)


def test_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "drive.yaml"
    file.write_text(SCENARIO)
    for words in ("validate", "scenarios", "plot"):
        cli.main([words, str(file)])
        assert refuse_commands(capsys, words)
    file.write_text(SCENARIO + f"{json.dumps(WORDS)}: 1\n")
    assert cli.main(["validate", str(file)]) == 2
    said = refuse_commands(capsys, "an unknown key")
    assert "unknown key" in said
    assert "owned" not in said, "it may be of a file that is none"


def test_a_recording_of_iperf3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"drive{WORDS.replace('/', '')}.json"
    file.write_text(json.dumps({"start": {}, "intervals": [], "end": {}, "error": WORDS}))
    assert cli.main(["import", str(file)]) == 2
    assert "owned" in refuse_commands(capsys, "iperf3")


def test_every_word_of_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = whole_run(tmp_path / "runs" / f"whole{WORDS.replace('/', '')}")
    words = next(one for one in HOSTILE if isinstance(one, str) and one.startswith("\x1b"))
    spoilt = [one for one in changes(run_dir) if one.what.endswith(f"= {words!r}")]
    assert len(spoilt) > 100
    for change, name in list(itertools.product(spoilt, COMMANDS))[::ONE_IN]:
        copy = changed(run_dir, tmp_path / run_dir.name, change)
        cli.main(
            [str(copy) if one == "RUN" else one for one in command(name, Path("RUN"), tmp_path)]
        )
        refuse_commands(capsys, (name, change))


def test_a_traceback(tmp_path: Path) -> None:
    code = (
        "import sys; from linklab.commands import cli, validate\n"
        f"def run(options): raise KeyError({WORDS!r} + chr(27))\n"
        "validate.run = run; cli.main(['validate', 'x'])"
    )
    done = ran([sys.executable, "-c", code], env=environment())
    assert "Traceback" in done.stderr
    assert done.stderr.replace("\n", "").isprintable()
