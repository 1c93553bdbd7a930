from pathlib import Path

import pytest

from linklab.core.installed import debian_packages, said

DPKG = """#!/bin/sh
for name; do :; done
case $name in
h2o) echo 'h2o 2.2.5' ;;
libssl3) echo 'libssl3 3.0.19'; echo 'libssl3 3.0.18' ;;
mininet) echo 'mininet ' ;;
*) exit 1 ;;
esac
"""


@pytest.fixture(autouse=True)
def only_dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dpkg-query").write_text(DPKG)
    (tmp_path / "dpkg-query").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_what_is_not_there_does_not_hide_the_others() -> None:
    names = ("nothing", "mininet", "h2o", "libssl3")
    assert debian_packages(names) == {"h2o": "2.2.5", "libssl3": "3.0.19"}


def test_a_program_that_is_not_there_or_fails_says_nothing() -> None:
    assert said(["nowhere"]) is None
    assert said(["dpkg-query", "nothing"]) is None
    assert said(["dpkg-query", "h2o"]) == "h2o 2.2.5"
