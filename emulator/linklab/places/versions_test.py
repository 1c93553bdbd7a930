import hashlib
from pathlib import Path

import pytest

from linklab.places import versions as module
from linklab.places.versions import versions


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory with programs, empty; the client would lie there too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "MULTILINK", tmp_path / "multilink")
    return tmp_path


def test_everything_is_asked(programs: Path) -> None:
    program(programs, "git", '[ "$3" = describe ] && echo abc123-dirty')
    program(programs, "multilink", '[ "$1" = version ] && echo multilink 1.2')
    program(programs, "dpkg-query", 'for name; do :; done; echo "$name 1:2.3-4 x"')
    found = versions.__wrapped__("host")
    assert found["linklab"] == "checkout"
    assert (found["revision"], found["multilink"]) == ("abc123-dirty", "multilink 1.2")
    assert found["h2o"] == found["linux-source-7.2"] == "1:2.3-4 x"
    assert set(found) == {
        *("linklab", "revision", "multilink", "multilink_sha256", "host_kernel"),
        *("guest_kernel", "guest_image", "python", "h2o", "mininet"),
        *("iproute2", "linux-source-7.2"),
    }
    assert (
        found["multilink_sha256"]
        == hashlib.sha256((programs / "multilink").read_bytes()).hexdigest()
    )
    assert all(found.values())


def test_what_cannot_be_asked_is_unknown(programs: Path) -> None:
    program(programs, "multilink", "echo half; exit 1")
    found = versions.__wrapped__("host")
    assert found["revision"] == found["multilink"] == found["h2o"] == "unknown"


def test_the_guest_s_programs_are_those_of_its_image(programs: Path) -> None:
    program(programs, "dpkg-query", 'for name; do :; done; echo "$name of-the-host"')
    found = versions.__wrapped__("guest")
    assert found["h2o"] == "2.2.5+dfsg2-7"
    assert found["python"].startswith("3.11.")
    assert "of-the-host" not in found.values()
