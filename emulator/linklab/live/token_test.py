"""Tests of livetoken.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from linklab.live import token as livetoken
from linklab.live.token import ENVIRONMENT, TokenError

HERE = ("127.0.0.1", 9464)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path))
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    return tmp_path


def test_a_token_is_new_every_time_and_only_its_account_can_read_it(cache: Path) -> None:
    token = livetoken.chosen()
    assert len(token) >= 32
    assert token != livetoken.chosen()
    path = livetoken.keep(HERE, token)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert livetoken.known(HERE) == token
    assert [one.name for one in path.parent.iterdir()] == ["127.0.0.1-9464.token"]
    livetoken.forget(HERE, token)
    assert livetoken.known(HERE) is None


def test_a_later_lab_keeps_its_token() -> None:
    livetoken.keep(HERE, "first")
    livetoken.keep(HERE, "second")
    livetoken.forget(HERE, "first")
    assert livetoken.known(HERE) == "second"


@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0", "::", "localhost"])
def test_a_lab_of_this_machine_is_found_on_the_loopback(listening: str) -> None:
    livetoken.keep((listening, 9464), "its token")
    for asked in ("127.0.0.1", "localhost", "::1"):
        assert livetoken.known((asked, 9464)) == "its token"
    assert livetoken.known(("127.0.0.1", 9465)) is None


def test_no_other_machine_is_told_this_ones_token() -> None:
    for listening in ("127.0.0.1", "0.0.0.0", "192.0.2.7"):
        livetoken.keep((listening, 9464), "its token")
    assert livetoken.known(("192.0.2.8", 9464)) is None
    assert livetoken.known(("evil.example", 9464)) is None
    assert livetoken.known(("192.0.2.7", 9464)) == "its token"


def test_a_token_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "correct-horse-battery")
    livetoken.keep(HERE, "another")
    assert livetoken.chosen() == "correct-horse-battery"
    assert livetoken.known(("192.0.2.8", 1)) == "correct-horse-battery"


@pytest.mark.parametrize("bad", ["", "short", "with spaces, and commas", "a" * 20 + "\n", "ä" * 20])
def test_a_token_that_is_none_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, bad)
    with pytest.raises(TokenError, match="is no token; allowed: at least 16"):
        livetoken.chosen()
