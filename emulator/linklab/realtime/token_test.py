"""Tests token.py."""

import contextlib
import secrets
from pathlib import Path

import pytest

from linklab.core import scratch as leftovers
from linklab.realtime import token as livetoken
from linklab.realtime.token import ENVIRONMENT, TokenError

HERE = ("127.0.0.1", 9464)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path))
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    return tmp_path


def test_a_token_is_new_every_time_and_only_its_account_can_read_it() -> None:
    token = livetoken.chosen()
    assert len(token) >= 32
    assert token != livetoken.chosen()
    with livetoken.kept(HERE, token) as path:
        assert path is not None
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert livetoken.known(HERE) == token
        assert [one.name for one in path.parent.iterdir()] == ["127.0.0.1-9464.token"]
    assert livetoken.known(HERE) is None


def test_a_later_lab_keeps_its_token() -> None:
    first = livetoken.kept(HERE, "first")
    first.__enter__()
    with livetoken.kept(HERE, "second"):
        first.__exit__(None, None, None)
        assert livetoken.known(HERE) == "second"


def test_where_no_token_can_be_kept_there_is_none(cache: Path) -> None:
    (cache / "live").write_text("in the way")
    with livetoken.kept(HERE, "token") as path:
        assert path is None


@pytest.mark.usefixtures("scratch")
def test_a_lab_that_lives_keeps_its_token_when_others_clean() -> None:
    with livetoken.kept(HERE, "living"), livetoken.kept(("127.0.0.1", 1), "dead") as dead:
        assert dead is not None
        left = dead.with_name("127.0.0.1-2.token")
        left.write_bytes(dead.read_bytes())
        assert list(leftovers.remove(cache=False)) == [f"removed {left}"]
        assert livetoken.known(HERE) == "living"
    assert list(leftovers.remove(cache=False)) == []


@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0", "::", "localhost"])
def test_a_lab_of_this_machine_is_found_on_the_loopback(listening: str) -> None:
    with livetoken.kept((listening, 9464), "its token"):
        for asked in ("127.0.0.1", "localhost", "::1"):
            assert livetoken.known((asked, 9464)) == "its token"
        assert livetoken.known(("127.0.0.1", 9465)) is None


def test_no_other_machine_is_told_this_ones_token() -> None:
    with contextlib.ExitStack() as stack:
        for listening in ("127.0.0.1", "0.0.0.0", "192.0.2.7"):
            stack.enter_context(livetoken.kept((listening, 9464), "its token"))
        assert livetoken.known(("192.0.2.8", 9464)) is None
        assert livetoken.known(("evil.example", 9464)) is None
        assert livetoken.known(("192.0.2.7", 9464)) == "its token"


def test_a_token_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "correct-horse-battery")
    with livetoken.kept(HERE, "another"):
        assert livetoken.chosen() == "correct-horse-battery"
        assert livetoken.known(("192.0.2.8", 1)) == "correct-horse-battery"


@pytest.mark.parametrize("bad", ["", "short", "with spaces, and commas", "a" * 20 + "\n", "ä" * 20])
def test_a_token_that_is_none_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, bad)
    with pytest.raises(TokenError, match="is no token; allowed: at least 16"):
        livetoken.chosen()


def test_a_token_that_the_user_chose_is_never_printed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a log had it. One that linklab drew is printed where no file has it."""
    drawn = livetoken.chosen()
    assert livetoken.whereabouts(None, drawn) == f"{ENVIRONMENT}={drawn}"
    for token in (secrets.token_urlsafe(12), "correct-horse-battery"):
        monkeypatch.setenv(ENVIRONMENT, token)
        assert livetoken.whereabouts(None, livetoken.chosen()) == f"that of {ENVIRONMENT}"
        assert livetoken.whereabouts(cache, livetoken.chosen()) == str(cache)
