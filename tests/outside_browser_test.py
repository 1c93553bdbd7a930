"""Tests a browser outside that uses a server outside through a lab's links, where linklab has no rights."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ScenarioFile, command, environment, needs_open_checkout
from container_test import IMAGE, docker, require_image, settings
from lab_page import window
from linklab.commands.report_browser_test import Tab, needs_browser
from linklab.core.paths import cache_dir
from through_the_lab import Launch, inside, needs_outside, proxied, served

pytestmark = [
    pytest.mark.one_at_a_time("rates"),
    needs_browser,
    needs_outside,
]

WIFI, LTE = (
    "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
    "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 40 ms",
)

FILES = 60
PAGE = "<!doctype html><title>sixty</title><script>const got = {}</script>\n"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("served")
    scripts = []
    for number in range(FILES):
        text = hashlib.shake_128(str(number).encode()).hexdigest(10_000 + 500 * number)
        (directory / f"part-{number}.js").write_text(f"got[{number}] = '{text}'.length")
        scripts.append(f"<script async src=part-{number}.js></script>\n")
    (directory / "index.html").write_text(PAGE + "".join(scripts))
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
    """Runs linklab without any privileges, with a cache of its own where it otherwise has some."""
    if os.geteuid() != 0:
        yield Launch()
        return
    nobody = [
        *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
        *("--no-new-privs", "--bounding-set", "-all"),
    ]
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


async def all_files(tab: Tab) -> None:
    """Waits for the page's files and checks each."""
    await tab.until(f"Object.keys(got).length == {FILES}")
    sizes = [await tab.value(f"got[{number}]") for number in range(FILES)]
    assert sizes == [2 * (10_000 + 500 * number) for number in range(FILES)]


CONTAINED = pytest.param(in_a_container, marks=pytest.mark.asked_for("LINKLAB_CONTAINERS"))


AS_NOBODY = pytest.param(as_nobody, marks=needs_open_checkout)


@pytest.mark.parametrize("how", [AS_NOBODY, CONTAINED], ids=lambda one: one.__name__)
def test_a_page_of_60_files(
    place: Path,
    scenario: ScenarioFile,
    origin: str,
    how: Callable[[Path], contextlib.AbstractContextManager[Launch]],
) -> None:
    file = Path(shutil.copy(scenario("browsed", size="1 MB", wifi=WIFI, lte=LTE), place))
    file.chmod(0o644)

    async def look(proxy: str) -> None:
        words = f"--proxy-server={proxy.removeprefix('http://')}"
        async with window(place / "browser", inside(origin), words) as tab:
            await all_files(tab)

    with how(place) as launch, proxied(place, file, origin, launch=launch) as lab:
        asyncio.run(look(lab.proxy()))
