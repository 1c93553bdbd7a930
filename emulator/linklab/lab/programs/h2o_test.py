"""Tests h2o.py."""

import contextlib
import getpass
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from pathlib import Path
from typing import Any

import pytest
import yaml

from linklab.core.free_ports import free_ports
from linklab.core.limits import MAX_SENT_BYTES
from linklab.lab.programs.h2o import configuration
from linklab.regression import loopback

P = Path("/tmp")
Ask = Callable[[str, str, bytes | None, dict[str, str]], tuple[int, HTTPMessage, bytes]]


def configured(*address: Any, **more: Any) -> str:
    """The configuration of a server at an address, with one path for all its files."""
    where = address or ("10.0.0.1", 443)
    return configuration(where, P, P, P, access_log=P, error_log=P, **more)


@pytest.mark.parametrize("name", ["plain", "with space: and #, \"quotes\" and 'more' ü"])
def test_the_configuration_holds_the_paths_as_they_are(name: str) -> None:
    directory = Path("/tmp", name)
    text = configuration(
        ("10.0.0.1", 443),
        directory / "cert.pem",
        directory / "server.key",
        directory,
        access_log=directory / "access.jsonl",
        error_log=directory / "error.log",
        user="nobody",
    )
    read = yaml.safe_load(text)
    assert read["user"] == "nobody"
    assert read["error-log"] == str(directory / "error.log")
    assert read["access-log"]["path"] == str(directory / "access.jsonl")
    assert read["hosts"]["default"]["paths"]["/"]["file.dir"] == str(directory)
    listen = read["listen"]
    assert (listen["host"], listen["port"]) == ("10.0.0.1", 443)
    assert listen["ssl"]["certificate-file"] == str(directory / "cert.pem")
    assert listen["ssl"]["key-file"] == str(directory / "server.key")
    assert "%{usec_frac}t" in read["access-log"]["format"]


def test_without_more_it_only_sends_its_file_as_who_started_it() -> None:
    text = configured("0.0.0.0", 8443)
    assert "user" not in yaml.safe_load(text)
    assert text.endswith('    paths:\n      /:\n        file.dir: "/tmp"\n')


def test_a_server_of_both_families_listens_on_each_with_and_without_tls() -> None:
    text = configured(plain_port=80, also_on=("2001:db8::1",))
    listeners = re.findall(r"listen:\n +host: (\S+)\n +port: (\d+)\n( +ssl:)?", text)
    assert [(host, port, bool(tls)) for host, port, tls in listeners] == [
        ("10.0.0.1", "443", True),
        ("2001:db8::1", "443", True),
        ("10.0.0.1", "80", False),
        ("2001:db8::1", "80", False),
    ]
    assert set(re.findall(r"(certificate|key)-file: (.*)", text)) == {
        ("certificate", '"/tmp"'),
        ("key", '"/tmp"'),
    }


def test_bodies_may_be_as_large_as_what_a_scenario_sends() -> None:
    limits = [
        yaml.safe_load(configured(uploads=uploads)).get("limit-request-body")
        for uploads in (None, P)
    ]
    assert limits == [None, MAX_SENT_BYTES]


@pytest.mark.skipif(shutil.which("h2o") is None, reason="h2o is not installed")
def test_messages_are_answered_and_uploads_kept(tmp_path: Path) -> None:
    """Also where a path looks like Ruby."""
    served, uploads = tmp_path / "a #{1} file", tmp_path / "up"
    served.mkdir()
    uploads.mkdir()
    (served / "x.bin").write_bytes(bytes(range(200)))
    with h2o_of(tmp_path, served, uploads) as ask:
        status, headers, body = ask("POST", "/x.bin", b"m" * 70_000, {"Range": "bytes=10-19"})
        assert (status, headers["Content-Range"]) == (206, "bytes 10-19/200")
        assert body == bytes(range(10, 20))
        for wrong in ({}, {"Range": "bytes=10-200"}, {"Range": "bytes=-5"}, {"Range": "bytes=9-3"}):
            assert ask("POST", "/x.bin", b"m", wrong)[0] == 416
        assert ask("POST", "/y.bin", b"m", {"Range": "bytes=0-1"})[0] == 404
        assert ask("GET", "/x.bin", None, {})[2] == bytes(range(200))

        assert ask("PUT", "/whole", b"abcdef", {})[0] == 201
        assert (uploads / "whole").read_bytes() == b"abcdef"
        assert ask("PUT", "/whole", b"xy", {})[0] == 201
        assert (uploads / "whole").read_bytes() == b"xy"
        assert ask("PUT", "/parts", b"def", {"Content-Range": "bytes 3-5/6"})[0] == 201
        assert ask("PUT", "/parts", b"abc", {"Content-Range": "bytes 0-2/6"})[0] == 201
        assert (uploads / "parts").read_bytes() == b"abcdef"
        for said in ("bytes 0-3/6", "bytes */6", "nothing"):
            assert ask("PUT", "/parts", b"abc", {"Content-Range": said})[0] == 400
        for name in ("/", "/.hidden"):
            assert ask("PUT", name, b"abc", {})[0] == 404
        assert sorted(path.name for path in uploads.iterdir()) == ["parts", "whole"]


@contextlib.contextmanager
def h2o_of(work: Path, served: Path, uploads: Path) -> Iterator[Ask]:
    """H2O with what a workload needs, without TLS; how to ask it."""
    port = free_ports(1)
    text = configuration(
        ("127.0.0.1", port),
        work,
        work,
        served,
        access_log=work / "access",
        error_log=work / "error",
        user=getpass.getuser(),
        uploads=uploads,
    )
    before, _, after = text.partition("  ssl:\n")
    (work / "h2o.conf").write_text(before + after[after.index("file.send") :])
    with subprocess.Popen(["h2o", "-m", "worker", "-c", work / "h2o.conf"]) as process:

        def ask(
            method: str, path: str, body: bytes | None, headers: dict[str, str]
        ) -> tuple[int, HTTPMessage, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with contextlib.closing(connection):
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read()

        try:
            for _ in range(200):
                with contextlib.suppress(ConnectionRefusedError):
                    ask("GET", "/", None, {})
                    break
                time.sleep(0.05)  # H2O does not listen yet.
            yield ask
        finally:
            process.terminate()


@pytest.mark.skipif(shutil.which("h2o") is None, reason="h2o is not installed")
def test_the_access_log_is_json_that_a_terminal_does_not_obey() -> None:
    request = b'GET /"\xc2\x9b2J\\ HTTP/1.1\r\nHost: h\r\nRange: "\x80\r\nConnection: close\r\n\r\n'
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        with loopback.serving(Path(name)) as server:
            context = ssl.create_default_context(cafile=str(server.ca))
            raw = socket.create_connection((loopback.ADDRESS, server.port))
            with context.wrap_socket(raw, server_hostname=loopback.ADDRESS) as client:
                client.sendall(request)
                while client.recv(4096):
                    pass
            log = Path(name, "access")
            deadline = time.monotonic() + 10
            while not log.read_bytes() and time.monotonic() < deadline:
                time.sleep(0.01)  # The log is not written yet.
            written = log.read_bytes()
    assert written.strip().decode("ascii").isprintable()
    line = json.loads(written)
    assert line["request"] == 'GET /"\xc2\x9b2J\\ HTTP/1.1'
    assert line["range"] == '"\x80'
