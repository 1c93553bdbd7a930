"""Tests loss_fetching.py. Its downloads: tests/loss_fetching_test.py."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from linklab.lab.super_aggregation import loss_fetching


class Fake:
    """A download that brings `abc`."""

    def __init__(self, url: str, address: str, device: str, output: int, *, helps: bool) -> None:
        self.output = output

    def run(self) -> None:
        os.pwrite(self.output, b"abc", 0)


@pytest.mark.parametrize(("content", "code"), [(b"abc", 0), (b"abd", 1)])
def test_a_file_that_is_another_is_a_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    code: int,
) -> None:
    monkeypatch.setattr(loss_fetching, "_Download", Fake)
    output = tmp_path / "out"
    words = ["http://h/x", "10.1.0.2", "rmnet0", str(output), hashlib.sha256(content).hexdigest()]
    assert loss_fetching.main(words) == code
    assert output.read_bytes() == b"abc"
    assert ("SHA-256" in capsys.readouterr().err) == bool(code)


def test_it_starts_from_any_directory_and_leaves_no_compiled_modules(tmp_path: Path) -> None:
    argv = loss_fetching.command("http://127.0.0.1/x", "127.0.0.1", "lo", str(tmp_path), "abc")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Its output is a directory.
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("loss-fetching: [Errno 21] Is a directory")
    assert list(tmp_path.iterdir()) == []
