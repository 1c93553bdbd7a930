import hashlib
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from linklab.lab.programs import authority
from linklab.places.guest import release
from linklab.places.guest.release import ReleaseError

CONTENT = b"what the file is"
HASH = hashlib.sha256(CONTENT).hexdigest()


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/leads-to-http":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/file")  # type: ignore[attr-defined]
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(CONTENT)
        while self.path == "/endless":
            self.wfile.write(bytes(1 << 20))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A release over https: its URL."""
    made = authority.ensure(tmp_path / "authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_cert))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert, made.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()


def fetched(tmp_path: Path, name: str, most_bytes: int = 100, sha256: str | None = HASH) -> bytes:
    release.fetch(name, tmp_path / "target", most_bytes=most_bytes, sha256=sha256)
    return (tmp_path / "target").read_bytes()


def test_a_file_comes_over_https(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKLAB_RELEASE", server)
    assert fetched(tmp_path, "file") == CONTENT
    assert fetched(tmp_path, "file", sha256=None) == CONTENT


@pytest.mark.parametrize("shown", ["{}", "file://{}", "{}/"])
def test_a_file_comes_from_a_directory(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "a release"
    directory.mkdir()
    (directory / "file").write_bytes(CONTENT)
    monkeypatch.setenv("LINKLAB_RELEASE", shown.format(directory))
    assert fetched(tmp_path, "file") == CONTENT


@pytest.mark.parametrize(
    ("name", "sha256", "words"),
    [
        ("file", HASH.replace("a", "b"), "does not have the SHA-256 that image.lock says"),
        ("endless", None, "has more than 100 bytes"),
        ("leads-to-http", HASH, "it leads to what is no https"),
    ],
)
def test_what_is_not_right_is_refused(
    name: str,
    sha256: str | None,
    words: str,
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINKLAB_RELEASE", server)
    with pytest.raises(ReleaseError, match=words):
        fetched(tmp_path, name, sha256=sha256)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "said", ["http://example.org/v1", "ftp://example.org", "here", "file://host/v1"]
)
def test_what_anybody_on_the_way_could_change_is_refused(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKLAB_RELEASE", said)
    with pytest.raises(ReleaseError, match="allowed: a directory.*or a URL of https"):
        release.address()
