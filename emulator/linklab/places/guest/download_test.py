import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from linklab.places.guest import download
from linklab.places.guest.download import DownloadError, sources
from linklab.places.guest.locked import Package

CONTENT = b"what the package is"


def package(name: str, content: bytes = CONTENT) -> Package:
    digest = hashlib.sha256(content).hexdigest()
    return Package(name, "1", digest, len(content), "debian", f"pool/{name}_1+b.deb")


class Mirror(ThreadingHTTPServer):
    """Sends what `files` say; counts who asks for what."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files: dict[str, bytes] = {}
        self.broken: set[str] = set()
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:5] if self.path in self.server.broken else content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Mirror]:
    with Mirror() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def mirror(server: Mirror, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The only source of packages."""
    monkeypatch.setattr(download, "sources", lambda one, *_: [f"{server.url}/debian/{one.path}"])
    return server


@pytest.fixture
def debian(server: Mirror, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """Debian's two archives, a year later: what `files` say that they still have."""
    monkeypatch.setattr(download, "_CURRENT", server.url)
    monkeypatch.setattr(download, "_PAST", server.url)
    monkeypatch.delenv(download.MIRROR, raising=False)
    return server


def test_what_debian_has_replaced_comes_from_its_past(debian: Mirror, tmp_path: Path) -> None:
    debian.files = {
        "/debian/pool/a_1%2Bb.deb": CONTENT,
        "/archive/debian/20261122T015521Z/pool/c_1%2Bb.deb": CONTENT,
    }
    download.fetch([package("a"), package("c")], "20261122T015521Z", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a_1+b.deb", "c_1+b.deb"}
    assert sorted(debian.asked) == [
        "/archive/debian/20261122T015521Z/pool/c_1%2Bb.deb",
        "/debian/pool/a_1%2Bb.deb",
        "/debian/pool/c_1%2Bb.deb",
    ]


def test_what_no_archive_has_any_more_is_named(debian: Mirror, tmp_path: Path) -> None:
    debian.files = {"/debian/pool/a_1%2Bb.deb": CONTENT}
    with pytest.raises(DownloadError) as error:
        download.fetch([package("a"), package("c")], "2026T", tmp_path)
    assert str(error.value).splitlines() == [
        "c_1+b.deb cannot be had:",
        f"  {debian.url}/debian/pool/c_1%2Bb.deb: HTTP Error 404: Not Found",
        f"  {debian.url}/archive/debian/2026T/pool/c_1%2Bb.deb: HTTP Error 404: Not Found",
        "  Is there a network? Else set LINKLAB_DEBIAN_MIRROR to a mirror that has it.",
    ]


def test_the_user_s_mirror_comes_first_and_the_archive_last() -> None:
    one = package("a")
    assert sources(one, "2026T", "http://mine/deb/") == [
        "http://mine/deb/debian/pool/a_1%2Bb.deb",
        "https://deb.debian.org/debian/pool/a_1%2Bb.deb",
        "https://snapshot.debian.org/archive/debian/2026T/pool/a_1%2Bb.deb",
    ]
    assert len(sources(one, "2026T", None)) == 2


def test_packages_come_from_a_mirror(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files = {f"/debian/pool/{name}_1+b.deb": CONTENT for name in "abcdef"}
    there: list[int] = []
    download.fetch([package(name) for name in "abcdef"], "", tmp_path, there.append)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}_1+b.deb" for name in "abcdef"}
    assert all(path.read_bytes() == CONTENT for path in tmp_path.iterdir())
    assert there == [len(CONTENT)] * 6


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (CONTENT.upper(), "it has another SHA-256"),
        (CONTENT + b"x", "it is longer than 19 bytes"),
        (CONTENT[:7], "it broke off after 7 of 19 bytes"),
    ],
)
def test_what_is_not_the_package_is_refused(
    sent: bytes, words: str, mirror: Mirror, tmp_path: Path
) -> None:
    mirror.files["/debian/pool/a_1+b.deb"] = sent
    with pytest.raises(DownloadError) as error:
        download.fetch([package("a")], "", tmp_path)
    assert str(error.value).startswith("a_1+b.deb cannot be had:\n")
    assert "set LINKLAB_DEBIAN_MIRROR to a mirror that has it" in str(error.value)
    assert f"{mirror.url}/debian/pool/a_1+b.deb: {words}" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_what_breaks_off_is_asked_for_again(mirror: Mirror, tmp_path: Path) -> None:
    path = "/debian/pool/a_1+b.deb"
    mirror.files[path] = CONTENT
    mirror.broken.add(path)
    with pytest.raises(DownloadError, match="IncompleteRead|broke off"):
        download.fetch([package("a")], "", tmp_path)
    assert mirror.asked == [path, path]


def test_without_a_network_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "sources", lambda *_: ["http://127.0.0.1:1/a"])
    with pytest.raises(DownloadError, match=r"(?s)refused.*Is there a network\? Else set"):
        download.fetch([package("a")], "", tmp_path)


def test_a_mirror_is_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(download.MIRROR, "/mnt/mirror")
    with pytest.raises(DownloadError, match="LINKLAB_DEBIAN_MIRROR=/mnt/mirror: it has to be a"):
        download.fetch([package("a")], "", tmp_path)
