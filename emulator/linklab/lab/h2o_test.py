"""Tests of h2o.py."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from linklab.lab.h2o import configuration
from linklab.regression import loopback


@pytest.mark.parametrize("name", ["plain", "with space: and #, \"quotes\" and 'more' ü"])
def test_the_configuration_holds_the_paths_as_they_are(name: str) -> None:
    directory = Path("/tmp", name)
    text = configuration(
        ("10.0.0.1", 443), directory / "cert.pem", directory / "server.key", directory,
        access_log=directory / "access.jsonl", error_log=directory / "error.log", user="nobody",
    )  # fmt: skip
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


def test_who_is_not_root_becomes_nobody_else() -> None:
    path = Path("/tmp")
    text = configuration(("0.0.0.0", 8443), path, path, path, access_log=path, error_log=path)
    assert "user" not in yaml.safe_load(text)


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
                time.sleep(0.01)
            written = log.read_bytes()
    assert written.strip().decode("ascii").isprintable()
    line = json.loads(written)
    assert line["request"] == 'GET /"\xc2\x9b2J\\ HTTP/1.1'
    assert line["range"] == '"\x80'
