"""Tests a browser outside that uses a server outside through a lab's links.

Rates are checked if the lab kept up with the clock. If not, the lab must have reported that.
"""

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import TEST_ALL, command, environment, whole_lines
from container_test import IMAGE, docker, require_image, settings
from linklab.commands.report_browser_test import Tab, browser, needs_browser
from linklab.core.frames import MTU_BYTES
from linklab.core.paths import cache_dir
from linklab.places.guest import gateway
from through_the_lab import Launch, ProxiedLab, inside, proxied, served
from tornado.websocket import websocket_connect

pytestmark = [
    pytest.mark.one_at_a_time("rates"),
    needs_browser,
    pytest.mark.skipif(gateway.obstacle() is not None, reason=str(gateway.obstacle())),
]

ScenarioFile = Callable[..., Path]

RATES_BPS = {"wifi": 20e6, "lte": 10e6, "": 30e6}
WIFI, LTE = (
    "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
    "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 40 ms",
)
PAYLOAD_RATIO = (MTU_BYTES - 52) / (MTU_BYTES + 14)
"""The share of a link's rate without the headers of Ethernet, IP and TCP."""

FILES = 60
SIZE = 50_000_000 if TEST_ALL else 25_000_000
CONTENT = hashlib.shake_128(b"download").digest(SIZE)
LONG = 64_000_000
"""The size of a file that no test loads to its end: CONTENT, then zeros."""

PAGE = """<!doctype html><title>sixty</title><script>
const got = {}
const seen = {bytes: 0, sum: 1, done: false, first_ms: 0, last_ms: 0, error: ""}
async function download(name) {
  const reader = (await fetch(name, {cache: "no-store"})).body.getReader()
  let low = 1, high = 0
  for (;;) {
    const {done, value} = await reader.read()
    if (done) break
    for (const byte of value) { low = (low + byte) % 65521; high = (high + low) % 65521 }
    seen.bytes += value.length
    seen.sum = high * 65536 + low
    seen.last_ms = performance.now()
    if (!seen.first_ms) { seen.first_ms = seen.last_ms; seen.first_bytes = value.length }
  }
  seen.done = true
}
</script>
"""
"""Shows what its 60 scripts loaded. `download` fetches a file, and Adler-32 checks it."""


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("served")
    scripts = []
    for number in range(FILES):
        text = hashlib.shake_128(str(number).encode()).hexdigest(10_000 + 500 * number)
        (directory / f"part-{number}.js").write_text(f"got[{number}] = '{text}'.length")
        scripts.append(f"<script async src=part-{number}.js></script>\n")
    (directory / "index.html").write_text(PAGE + "".join(scripts))
    (directory / "download").write_bytes(CONTENT)
    (directory / "long").write_bytes(CONTENT)
    os.truncate(directory / "long", LONG)
    with served(directory) as url:
        yield f"{url}index.html"


@pytest.fixture
def place() -> Iterator[Path]:
    """Makes a directory that everyone may enter, unlike the tests' directory."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@contextlib.contextmanager
def as_nobody(directory: Path) -> Iterator[Launch]:
    """Runs linklab without any privileges, with a cache of its own."""
    if os.geteuid() != 0:
        pytest.skip("all runs are without rights here")
    nobody = [
        *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
        *("--no-new-privs", "--bounding-set", "-all"),
    ]
    if subprocess.run([*nobody, "test", "-r", sys.executable], check=False).returncode != 0:
        pytest.skip("the checkout lies in a directory that nobody may enter")
    cache = directory / "cache"
    for name in ("kernel", "image"):
        shutil.copytree(
            cache_dir() / name,
            cache / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("kernel-*", "*.log"),
        )
    (directory / "runs").mkdir()
    subprocess.run(["chown", "-R", "65534:65534", cache, directory / "runs"], check=True)
    words = [*nobody, *command()]
    own = {**environment(), "LINKLAB_CACHE": str(cache), "HOME": "/nonexistent"}
    yield Launch(words, words, own)


@contextlib.contextmanager
def in_a_container(directory: Path) -> Iterator[Launch]:
    """Runs linklab's image with the rights of compose.yaml, which are none, and this machine's
    loopback device."""
    require_image()
    (directory / "runs").mkdir()
    (directory / "runs").chmod(0o777)
    name = f"linklab-browser-{os.getpid()}"
    own = [one for one in settings() if not one.startswith("--network")]
    start = [
        *("docker", "run", "--rm", "--init", f"--name={name}", *own, "--network=host"),
        f"--volume={directory}:{directory}",
        IMAGE,
    ]
    try:
        yield Launch(start, ["docker", "exec", name, "linklab"])
    finally:
        docker("rm", "--force", "--volumes", name)


@contextlib.contextmanager
def as_it_is(directory: Path) -> Iterator[Launch]:
    """Runs linklab as the user who runs the tests."""
    yield Launch()


def browsed(
    profile: Path, lab: ProxiedLab, link: str, page: str, what: Callable[[Tab], Awaitable[Any]]
) -> Any:
    """Does something in a browser whose proxy is the lab's, over one link or all. Returns the
    result."""

    async def look(address: str) -> Any:
        tab = Tab(await websocket_connect(address, max_message_size=1 << 28))
        await tab.call("Runtime.enable")
        await tab.call("Page.enable")
        await tab.call("Page.navigate", url=page)
        return await what(tab)

    proxy = f"--proxy-server={lab.proxy(link).removeprefix('http://')}"
    with browser(profile / (link or "all"), proxy) as address:
        return asyncio.run(look(address))


async def all_files(tab: Tab) -> None:
    """Waits for the page's files and checks each."""
    await tab.until(f"Object.keys(got).length == {FILES}")
    sizes = [await tab.value(f"got[{number}]") for number in range(FILES)]
    assert sizes == [2 * (10_000 + 500 * number) for number in range(FILES)]


async def begin(tab: Tab, name: str = "download") -> None:
    """Makes the page download a large file from now on."""
    await tab.value(f"download('{name}').catch(error => {{ seen.error = String(error) }}), 0")


async def end(tab: Tab, patience_s: float = 240.0) -> float:
    """Waits until the file is complete. Returns its rate in bit/s, from the first byte on."""
    for _ in range(int(patience_s * 5)):
        assert await tab.value("seen.error") == ""
        if await tab.value("seen.done"):
            break
        await asyncio.sleep(0.2)  # The page is not done yet.
    assert await tab.value("seen.bytes") == SIZE
    assert await tab.value("seen.sum") == zlib.adler32(CONTENT)
    elapsed_ms = await tab.value("seen.last_ms - seen.first_ms")
    return float((SIZE - await tab.value("seen.first_bytes")) * 8 / elapsed_ms * 1e3)


def kept_up(lab: ProxiedLab) -> bool:
    """Tells whether the lab reported no lateness."""
    return "CANNOT KEEP UP" not in lab.said()


CONTAINED = pytest.param(in_a_container, marks=pytest.mark.asked_for("LINKLAB_CONTAINERS"))


@pytest.mark.parametrize("how", [as_it_is, as_nobody, CONTAINED], ids=lambda one: one.__name__)
def test_a_page_of_60_files_and_a_large_one(
    place: Path,
    scenario: ScenarioFile,
    origin: str,
    how: Callable[[Path], contextlib.AbstractContextManager[Launch]],
) -> None:
    """Over each link and over both, everything arrives as fast as the links allow. `make test` leaves
    out LTE alone, which the test below has. It starts the lab in the other two ways for the page."""
    alone = ("wifi", "lte") if TEST_ALL else ("wifi",)
    file = shutil.copy(scenario("browsed", size="1 MB", wifi=WIFI, lte=LTE), place)
    Path(file).chmod(0o644)

    async def load(tab: Tab) -> float:
        await all_files(tab)
        await begin(tab)
        return await end(tab)

    with how(place) as launch, proxied(place, Path(file), origin, launch=launch) as lab:

        def share(link: str) -> float:
            rate_bps: float = browsed(place, lab, link, inside(origin), load)
            return rate_bps / (RATES_BPS[link] * PAYLOAD_RATIO)

        if how is not as_it_is and not TEST_ALL:
            browsed(place, lab, "", inside(origin), all_files)
            return
        with ThreadPoolExecutor() as browsers:  # Each link has what the other has not.
            found = dict(zip(alone, browsers.map(share, alone), strict=True))
        found[""] = share("")
        print({name or "both": round(one, 4) for name, one in found.items()}, kept_up(lab))
        assert all(one <= 1.03 for one in found.values()), found
        if kept_up(lab):
            assert all(one >= 0.97 for one in found.values()), found


def carried(run_dir: Path, link: str, first_s: float, last_s: float) -> tuple[int, float]:
    """Returns what a link brought between two times of the lab: the bytes, and their rate in bit/s."""
    samples = [
        one
        for one in whole_lines(run_dir / "queues.jsonl")
        if (one["link"], one["direction"]) == (link, "down") and first_s <= one["t_s"] <= last_s
    ]
    first, last = samples[0], samples[-1]
    sent_bytes = last["sent_bytes"] - first["sent_bytes"]
    return sent_bytes, sent_bytes * 8 / (last["t_s"] - first["t_s"])


def test_a_link_that_goes_is_seen_by_the_browser(
    tmp_path: Path, scenario: ScenarioFile, origin: str
) -> None:
    """Over both links the other one is left. Over Wi-Fi alone nothing arrives until it is back.

    The lab's own records say what LTE carries. The page gets bytes in order, so it gets some of them
    later, the later the busier this machine is."""
    file = scenario("leaving", size="1 MB", wifi=WIFI, lte=LTE)

    async def on_lte(tab: Tab) -> None:
        await asyncio.sleep(4)  # TCP notices the lost link.
        before = await tab.value("seen.bytes")
        await asyncio.sleep(5)  # LTE's rate is measured over this time.
        await tab.until(f"seen.bytes > {before + 1e6}")

    async def stopped(tab: Tab) -> None:
        """Waits until nothing arrives for two seconds."""
        before, now = -1, 0
        while before != now:
            await asyncio.sleep(2)  # The page may still get what is on its way.
            before, now = now, await tab.value("seen.bytes")
            assert now < LONG

    async def left(tab: Tab, what: Callable[[Tab], Awaitable[None]]) -> None:
        """Takes Wi-Fi away until something has happened. Then the page gets more, all of it right."""
        await all_files(tab)
        await begin(tab, "long")
        await tab.until("seen.bytes > 2e6")
        lab.linklab("link", "wifi", "carrier", "down")
        await what(tab)
        lab.linklab("link", "wifi", "carrier", "up")
        await tab.until(f"seen.bytes > {await tab.value('seen.bytes') + 1e6}")
        size, found, error = json.loads(
            await tab.value("JSON.stringify([seen.bytes, seen.sum, seen.error])")
        )
        expected = zlib.adler32(bytes(max(0, size - SIZE)), zlib.adler32(CONTENT[:size]))
        assert (found, error) == (expected, "")

    with proxied(tmp_path, file, origin) as lab:
        browsed(tmp_path, lab, "", inside(origin), functools.partial(left, what=on_lte))
        down_s, up_s = (
            one["t_s"]
            for one in whole_lines(lab.run_dir() / "events.jsonl")
            if one["kind"] == "live"
        )
        spans = (("wifi", down_s + 1), ("lte", down_s + 4))
        found = {link: carried(lab.run_dir(), link, first_s, up_s) for link, first_s in spans}
        print("while Wi-Fi is away:", found, kept_up(lab))
        assert found["wifi"][0] == 0
        share = found["lte"][1] / RATES_BPS["lte"]
        assert 0 < share < 1.03
        if kept_up(lab):
            assert share > 0.9
        browsed(tmp_path, lab, "wifi", inside(origin), functools.partial(left, what=stopped))
