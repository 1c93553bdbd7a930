"""Tests of h2o.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from linklab.h2o import configuration


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
