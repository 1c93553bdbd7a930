from pathlib import Path

import pytest

from bench.common import BenchError, check_installed

PACKAGES = {"curl": "curl", "aria2c": "aria2"}


def test_what_is_missing_is_named_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in PACKAGES:
        (tmp_path / program).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    check_installed(PACKAGES)

    (tmp_path / "aria2c").unlink()
    with pytest.raises(BenchError, match=r"this machine: aria2c; sudo apt-get install aria2 "):
        check_installed(PACKAGES)
