"""Tests of page_link.py."""

import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from linklab.realtime import page_link

TOKEN = "secret-of-this-lab"


@pytest.mark.parametrize(
    ("address", "page"),
    [
        (("127.0.0.1", 9464), "http://127.0.0.1:9464/"),
        (("0.0.0.0", 1), "http://127.0.0.1:1/"),
        (("::", 1), "http://[::1]:1/"),
        (("192.0.2.7", 1), "http://192.0.2.7:1/"),
    ],
)
def test_a_url_of_this_machine(address: tuple[str, int], page: str) -> None:
    assert page_link.url(address, None) == page
    assert page_link.url(address, "a+b/c&d") == f"{page}#token=a%2Bb%2Fc%26d"


def test_a_log_gets_no_token_and_a_terminal_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with page_link.shown(("127.0.0.1", 9464), TOKEN, opens=False):
        said = capsys.readouterr().err
    assert said == "page: http://127.0.0.1:9464/ (its buttons need the token)\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with page_link.shown(("127.0.0.1", 9464), TOKEN, opens=False):
        said = capsys.readouterr().err
    assert said == f"page: http://127.0.0.1:9464/#token={TOKEN}\n"


def test_no_argument_of_a_browser_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def opened(url: str) -> bool:
        asked.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    with page_link.shown(("127.0.0.1", 9464), TOKEN, opens=True):
        (url,) = asked
        assert TOKEN not in url
        file = Path(urlsplit(url).path)
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert f"#token={TOKEN}" in file.read_text()
    assert not file.exists()


def test_where_no_browser_is_the_lab_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    with page_link.shown(("127.0.0.1", 9464), TOKEN, opens=True):
        assert "no browser can be opened here" in capsys.readouterr().err
