import shutil
import subprocess
from pathlib import Path

import pytest

from linklab.core import version


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")
def test_a_checkout_has_the_version_of_its_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        identity = [
            *("-c", "user.name=x", "-c", "user.email=x@example.org"),
            *("-c", "tag.gpgSign=false"),
        ]
        subprocess.run(["git", *identity, "-C", tmp_path, *words], check=True, capture_output=True)

    monkeypatch.setattr(version, "REPOSITORY", tmp_path)
    monkeypatch.setattr(version, "INSTALLED", False)
    assert version.own_version.__wrapped__() == "0+unknown"
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert version.own_version.__wrapped__().startswith("0.1.dev1+g")
    git("tag", "v1.2.0")
    assert version.own_version.__wrapped__() == "1.2.0"
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert version.own_version.__wrapped__().startswith("1.2.1.dev1+g")
    (tmp_path / "VERSION").write_text("3.4.5\n")
    assert version.own_version.__wrapped__() == "3.4.5"
