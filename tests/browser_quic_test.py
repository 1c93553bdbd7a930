"""Tests which of a browser's traffic over the links is QUIC (HTTP/3): that of a browser inside a lab, but
not that of a browser outside that uses the lab's proxies."""

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Linklab, nightly
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from free_ports import free_port
from linklab.commands.report_browser_test import CHROMIUM, Tab, browser, needs_browser
from linklab.lab.programs import certificates
from linklab.places.guest import gateway
from through_the_lab import inside, proxied
from tornado.websocket import websocket_connect

pytestmark = needs_browser

needs_outside = pytest.mark.skipif(gateway.obstacle() is not None, reason=str(gateway.obstacle()))

ScenarioFile = Callable[..., Path]

SIZE = 1_000_000

PAGE = """<!doctype html><title>waiting</title><p id="said"></p><script>
const load = async () => {
  const body = await (await fetch("file", {cache: "no-store"})).arrayBuffer()
  const [page] = performance.getEntriesByType("navigation")
  const file = performance.getEntriesByType("resource").find((one) => one.name.endsWith("/file"))
  document.getElementById("said").textContent =
    [page.nextHopProtocol, file.nextHopProtocol, body.byteLength].join(" ")
}
load().catch((error) => { document.getElementById("said").textContent = `failed: ${error}` })
</script>
"""


@dataclass(frozen=True)
class Site:
    """A page and a file that quic-go serves by TCP and UDP, with a certificate that browsers are told to
    trust."""

    directory: Path
    serve: list[str]
    trust: str


@pytest.fixture
def site(tmp_path: Path, http3: Path) -> Site:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "index.html").write_text(PAGE)
    (directory / "file").write_bytes(hashlib.shake_128(b"site").digest(SIZE))
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    names = ("127.0.0.1", "10.0.0.1", "10.0.1.1")
    certificates.ensure((ca, tmp_path / "ca.key"), (cert, key), names, bytes(32))
    public = x509.load_pem_x509_certificate(cert.read_bytes()).public_key()
    info = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = base64.b64encode(hashlib.sha256(info).digest()).decode()
    words = [http3 / "example", "-tcp", "-cert", cert, "-key", key, "-www", directory]
    return Site(
        directory, [str(one) for one in words], f"--ignore-certificate-errors-spki-list={digest}"
    )


@contextlib.contextmanager
def served(site: Site) -> Iterator[str]:
    """Serves the site on this machine's loopback device. Yields its URL."""
    port = free_port()
    process = subprocess.Popen(
        [*site.serve, "-bind", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"https://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


async def said(profile: Path, url: str, *options: str) -> list[str]:
    """Returns the protocols of the page and of its file, and the file's size, as a browser sees them."""
    with browser(profile, "--enable-quic", *options) as address:
        tab = Tab(await websocket_connect(address, max_message_size=1 << 28))
        await tab.call("Page.navigate", url=url)
        await tab.until("document.querySelector('#said')?.textContent")
        return str(await tab.value("document.querySelector('#said').textContent")).split()


@nightly
@needs_outside
@pytest.mark.one_at_a_time
def test_a_browser_outside_takes_tcp(tmp_path: Path, scenario: ScenarioFile, site: Site) -> None:
    """Chromium sends no QUIC by a SOCKS5 proxy, even to a server of which it is told to use nothing else.
    Without a proxy it does."""
    file = scenario("outside", size="1 MB")
    with served(site) as url, proxied(tmp_path, file, url, ca=tmp_path / "ca.pem") as lab:

        def by(name: str, target: str, *options: str) -> list[str]:
            force = f"--origin-to-force-quic-on={target.split('/')[2]}"
            return asyncio.run(said(tmp_path / name, target, site.trust, force, *options))

        direct = by("direct", url)
        socks = by("socks", inside(url), f"--proxy-server={lab.proxy('', 'socks5')}")
    assert direct == ["h3", "h3", str(SIZE)]
    assert socks == ["h2", "h2", str(SIZE)]


@nightly
def test_a_browser_inside_a_lab_takes_quic(
    tmp_path: Path, linklab: Linklab, scenario: ScenarioFile, site: Site, http3: Path
) -> None:
    """In virtual time, from a server inside."""
    file = scenario("inside", size="1 MB")
    url = "https://10.0.0.1:443/"
    done = linklab(
        *("exec", file, "--json", "--clock", "virtual"),
        *("--share", (http3 / "modules").read_text().strip()),
        *("--server", " ".join([*site.serve, "-bind", "{address}:{port}"]), "--"),
        *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu"),
        *(
            "--user-data-dir=/tmp/profile",
            "--enable-quic",
            "--origin-to-force-quic-on=10.0.0.1:443",
        ),
        *(site.trust, "--virtual-time-budget=30000", "--dump-dom", url),
    )
    run_dir = done.run_dir
    page = (run_dir / "client.out").read_text()
    (found,) = re.findall(r'<p id="said">([^<]*)<', page)
    assert found.split() == ["h3", "h3", str(SIZE)], done.err
    received = json.loads((run_dir / "outcome.json").read_text())["received_bytes"]
    assert received["wifi"] > SIZE
