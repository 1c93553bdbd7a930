"""The lab's page in a browser: its controls change the links, everybody can use it, nothing leaks.

SCREENSHOTS names a directory that gets pictures of the page.
"""

import asyncio
import base64
import hashlib
import json
import os
import shutil
import signal
import tarfile
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Called, environment, ran
from lab_page import (
    TOKEN,
    clicked,
    complaints,
    forgive,
    look,
    opened,
    picture,
    press,
    requested,
    seen,
    typed,
    until,
)
from linklab import scenario as scenarios
from linklab.commands.report_browser_test import Tab, needs_browser
from live_test import Live, live
from through_the_lab import PATIENCE_S, Launch, ProxiedLab, needs_outside, proxied, served

pytestmark = [
    pytest.mark.one_at_a_time,
    needs_browser,
    needs_outside,
]

AXE_VERSION = "4.14.1"
AXE_INTEGRITY = (
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
"""SHA-512 of npm's package, in base64."""

WIFI = "down: 12 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, radio: {standard: n, access_points: [{name: ap1}, {name: ap2, signal: -50 dBm}]}"
LTE = "down: 8 Mbit/s, up: 4 Mbit/s, rtt: 40 ms"

SOON_S = 1.0


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, as npm has it."""
    directory = REPOSITORY / "build" / "axe-core"
    package = directory / f"axe-core-{AXE_VERSION}.tgz"
    if not package.exists():
        if shutil.which("npm") is None:
            pytest.skip("needs npm: apt-get install npm")
        directory.mkdir(parents=True, exist_ok=True)
        done = ran(
            ["npm", "pack", f"axe-core@{AXE_VERSION}", "--pack-destination", directory],
            cwd=directory,
        )
        if done.returncode != 0:
            pytest.skip(f"npm has no axe-core: {done.stderr[-200:]}")
    digest = hashlib.sha512(package.read_bytes()).digest()
    assert base64.b64encode(digest).decode() == AXE_INTEGRITY
    with tarfile.open(package) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedLab]:
    directory = tmp_path_factory.mktemp("page")
    (directory / "served").mkdir()
    (directory / "served" / "small").write_bytes(b"x" * 100)
    (directory / "served" / "large").write_bytes(os.urandom(60_000_000))
    file = directory / "paged.yaml"
    file.write_text(
        f"name: paged\npayload: {{size: 1 MB}}\nlinks:\n  wifi: {{{WIFI}}}\n  lte: {{{LTE}}}\n"
        "events:\n  - {at: 1 h, link: lte, for: 2 s, outage: true}\n"
    )
    launch = Launch(environment={**environment(), "LINKLAB_LIVE_TOKEN": TOKEN})
    with (
        served(directory / "served") as url,
        proxied(directory, file, f"{url}small", launch=launch) as made,
    ):
        yield made


def paged(lab: ProxiedLab, profile: Path, what: Callable[[Tab], Awaitable[None]]) -> None:
    """Does something on the lab's page, which has to cause no complaint and to leak no token."""

    async def do() -> None:
        async with opened(profile, f"http://{lab.address}/#token={TOKEN}") as tab:
            await what(tab)
            assert complaints(tab) == []
            asked = requested(tab)
            assert asked, "the browser was not watched"
            assert not [one for one in asked if one.startswith("http") and lab.address not in one]
            assert not [one for one in asked if TOKEN in one.partition("#")[0]]

    asyncio.run(do())


def state(lab: ProxiedLab, link: str) -> dict[str, Any]:
    """The newest state of a link, as applied."""
    lines = (lab.run_dir() / "links.jsonl").read_bytes().split(b"\n")[:-1]
    states = [json.loads(line) for line in lines]
    return next(one for one in reversed(states) if one["link"] == link)


class Download(threading.Thread):
    """A download through a proxy of the lab, over one link, and what has come of it."""

    def __init__(self, lab: ProxiedLab, link: str) -> None:
        super().__init__(daemon=True)
        self._lab, self._link = lab, link
        self.bytes = 0
        self.start()

    def run(self) -> None:
        handler = urllib.request.ProxyHandler({"http": self._lab.proxy(self._link)})
        url = self._lab.origin.replace("small", "large")
        with urllib.request.build_opener(handler).open(url, timeout=60) as answer:
            while content := answer.read(10_000):
                self.bytes += len(content)

    async def rate_bps(self, seconds: float) -> float:
        before, begun_s = self.bytes, time.monotonic()
        await asyncio.sleep(seconds)  # The rate is measured over this time.
        return (self.bytes - before) * 8 / (time.monotonic() - begun_s)

    async def carries(self, least_bps: float, most_bps: float) -> None:
        """Waits until its rate is between two rates. TCP waits for its timer after a short queue has
        dropped a window."""
        deadline = time.monotonic() + PATIENCE_S
        while not least_bps < await self.rate_bps(3) < most_bps:
            assert time.monotonic() < deadline

    async def stands_still(self, seconds: float) -> None:
        """Waits until nothing has come for some seconds. A busy machine passes late what it has."""
        deadline = time.monotonic() + PATIENCE_S
        while await self.rate_bps(seconds) > 0:
            assert time.monotonic() < deadline


def kept_up(lab: ProxiedLab) -> bool:
    return "CANNOT KEEP UP" not in lab.said()


FIELDS: tuple[tuple[str, str, str, Callable[[dict[str, Any]], bool]], ...] = (
    ("wifi", "down", "3 Mbit/s", lambda now: now["down_rate_bps"] == 3_000_000),
    ("wifi", "up", "700 kbit/s", lambda now: now["up_rate_bps"] == 700_000),
    ("wifi", "rtt", "0.1 s", lambda now: now["delay_s"] == 0.05),
    ("wifi", "jitter", "7 ms", lambda now: now["jitter_s"] == 0.007),
    ("wifi", "loss", "1.5 %", lambda now: now["loss_ratio"] == 0.015),
    ("wifi", "queue", "40 kB", lambda now: now.get("queue_bytes") == 40_000),
    ("lte", "down", "2mbit", lambda now: now["down_rate_bps"] == 2_000_000),
)


def test_every_control_changes_its_link_soon(lab: ProxiedLab, tmp_path: Path) -> None:
    took: dict[str, float] = {}

    async def work(tab: Tab) -> None:
        for link, name, words, is_so in FIELDS:
            await typed(tab, f"{link}-{name}", words)
            took[f"{link} {name}"] = await until(lambda: is_so(state(lab, link)))  # noqa: B023
        await tab.value("document.getElementById('wifi-impair').closest('details').open = true")
        for way, key, words in (
            ("impair_up", "delay", "30 ms"),
            ("impair_down", "black_hole", "true"),
        ):
            for part, value in (("way", way), ("key", key)):
                await tab.value(
                    f"document.getElementById('wifi-impair-{part}').value = '{value}';"
                    f"document.getElementById('wifi-impair-{part}').dispatchEvent(new Event('change'))"
                )
            await typed(tab, "wifi-impair", words)
            if key == "black_hole":
                await tab.until(
                    "document.querySelector('#wifi-impair-problem').textContent.includes("
                    "'needs a size above which packets vanish')"
                )
                forgive(tab)
                continue
            took[f"wifi {key}"] = await until(
                lambda: state(lab, "wifi").get("impair_up") == {"delay_s": 0.03}
            )
            await tab.until("document.querySelector('.impaired').textContent === 'up: delay 30 ms'")
        wifi = "[aria-labelledby=link-wifi]"
        buttons: list[tuple[str, Callable[[], bool]]] = [
            ("Down", lambda: not state(lab, "wifi")["up"]),
            ("Up again", lambda: state(lab, "wifi")["up"]),
            ("Down for 3 s", lambda: not state(lab, "wifi")["up"]),
            ("As the scenario says", lambda: state(lab, "wifi")["down_rate_bps"] > 3_000_000),
        ]
        for words, is_it in buttons:
            if words == "Up again":
                await tab.until(
                    "[...document.querySelectorAll('button')].some(one => one.textContent === 'Up again')"
                )
            await clicked(tab, words, wifi)
            took[words] = await until(is_it)
        assert state(lab, "wifi")["delay_s"] == 0.01
        assert state(lab, "wifi")["up"]
        before = state(lab, "wifi")["access_point"]
        await clicked(tab, "Handover", wifi)
        await until(lambda: state(lab, "wifi")["access_point"] not in ("", before))
        # A slider, by the keyboard.
        await tab.value("document.querySelector('[aria-label=\"Rate of lte\"]').focus()")
        for _ in range(3):
            await press(tab, "ArrowRight", 39)
        took["slider"] = await until(lambda: state(lab, "lte")["down_rate_bps"] > 2_000_000)
        # It has the focus, and shows what others change.
        lab.linklab("link", "lte", "down", "300 kbit/s")
        await tab.until("document.querySelector('#lte-down').value === '300 kbit/s'")
        assert await tab.value("document.activeElement.ariaLabel") == "Rate of lte"
        assert int(await tab.value("document.activeElement.value")) < 40
        await clicked(tab, "As the scenario says", "[aria-labelledby=link-lte]")
        await until(lambda: state(lab, "lte")["down_rate_bps"] == 8_000_000)

    paged(lab, tmp_path, work)
    print({name: round(seconds, 2) for name, seconds in took.items()}, kept_up(lab))
    if kept_up(lab):
        assert max(took.values()) < SOON_S, took


def test_a_download_through_the_proxy_feels_the_controls(lab: ProxiedLab, tmp_path: Path) -> None:
    found: dict[str, float] = {}

    async def work(tab: Tab) -> None:
        download = Download(lab, "lte")
        await until(lambda: download.bytes > 1_000_000)
        found["before"] = await download.rate_bps(2)
        await typed(tab, "lte-queue", "20 kB")
        await typed(tab, "lte-down", "1 Mbit/s")
        await asyncio.sleep(SOON_S)  # So soon it has to be felt.
        found["slow"] = await download.rate_bps(3)
        await download.carries(0.5e6, 1.3e6)
        await clicked(tab, "Down", "[aria-labelledby=link-lte]")
        await asyncio.sleep(SOON_S)  # So soon it has to be felt.
        found["down"] = await download.rate_bps(1)
        await download.stands_still(1)
        await clicked(tab, "As the scenario says", "[aria-labelledby=link-lte]")
        await until(lambda: state(lab, "lte")["up"])
        await typed(tab, "lte-rtt", "800 ms")
        await until(lambda: state(lab, "lte")["delay_s"] == 0.4)
        begun_s = time.monotonic()
        asked = urllib.request.build_opener(urllib.request.ProxyHandler({"http": lab.proxy("lte")}))
        await asyncio.to_thread(lambda: asked.open(lab.origin, timeout=60).read())
        found["small file"] = time.monotonic() - begun_s
        await clicked(tab, "As the scenario says", "[aria-labelledby=link-lte]")

    paged(lab, tmp_path, work)
    print(found, kept_up(lab))
    assert found["slow"] < 2e6, found
    assert found["small file"] > 0.8
    if kept_up(lab):
        assert found["down"] == 0
        assert found["before"] > 4e6
        assert found["slow"] < 1.3e6


def test_what_was_done_by_hand_is_saved(lab: ProxiedLab, tmp_path: Path) -> None:
    async def work(tab: Tab) -> None:
        await tab.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "saved")
        )
        await typed(tab, "wifi-down", "2.5 Mbit/s")
        await until(lambda: state(lab, "wifi")["down_rate_bps"] == 2_500_000)
        await tab.until(
            "document.querySelector('#happened').textContent.includes('down 2.5 Mbit/s')"
        )
        await tab.value("document.querySelector('#from').value = '0 s'")
        await typed(tab, "name", "Not A Name")
        await tab.until("document.querySelector('#saved').textContent.includes('is no name')")
        assert await seen(tab, "#saved")
        forgive(tab)
        await typed(tab, "name", "by-me")
        await until(lambda: (tmp_path / "saved" / "by-me.yaml").exists())
        await tab.until("document.querySelector('#saved').textContent.startsWith('saved by-me')")
        assert await seen(tab, "#saved")
        await clicked(tab, "As the scenario says", "[aria-labelledby=link-wifi]")

    (tmp_path / "saved").mkdir()
    paged(lab, tmp_path / "browser", work)
    made = scenarios.load(tmp_path / "saved" / "by-me.yaml")
    done = [json.loads(line) for line in (lab.run_dir() / "events.jsonl").read_text().splitlines()]
    (live,) = [one for one in done if one["detail"] == "down 2.5 Mbit/s" and one["kind"] == "live"]
    (event,) = [one for one in made.events if one.down_rate_bps == 2_500_000]
    assert (event.link, event.at_s) == ("wifi", round(live["t_s"], 9))  # Files have nanoseconds.
    assert made.events[-1].at_s == 3600.0, "the scenario's own event is there, too"


def test_what_the_lab_refuses_is_said_beside_the_field(lab: ProxiedLab, tmp_path: Path) -> None:
    async def work(tab: Tab) -> None:
        await tab.value("sessionStorage.setItem('linklab-token', 'of-somebody-else')")
        await clicked(tab, "Down", "[aria-labelledby=link-wifi]")
        await tab.until("!document.querySelector('#key').hidden")
        assert state(lab, "wifi")["up"]
        await typed(tab, "token", TOKEN)
        await tab.until("document.querySelector('#key').hidden")
        await typed(tab, "wifi-rtt", "5 apples")
        await tab.until(
            "document.querySelector('#wifi-rtt-problem').textContent.includes(\"unknown unit 'apples'\")"
        )
        assert (
            await tab.value("document.getElementById('wifi-rtt').getAttribute('aria-invalid')")
            == "true"
        )
        await typed(tab, "lte-down", "40 Gbit/s")
        refused = "down: '40 Gbit/s' is more than can be shaped; allowed: at most 10 Gbit/s"
        await tab.until(f'document.querySelector("#lte-down-problem").textContent === "{refused}"')
        assert await seen(tab, "#lte-down-problem")
        assert await seen(tab, "#said")
        assert "_bps" not in await tab.value("document.body.innerText")
        forgive(tab)
        await tab.value("location.hash = ''")
        assert await tab.value("location.href") == f"http://{lab.address}/"

    paged(lab, tmp_path, work)


def test_the_keyboard_reaches_everything(lab: ProxiedLab, tmp_path: Path) -> None:
    async def work(tab: Tab) -> None:
        everything = await tab.value(
            "[...document.querySelectorAll('button, input, select, [tabindex]')].filter(one => "
            "one.checkVisibility()).map((one, index) => one.dataset.number = index).length"
        )
        await tab.value("document.activeElement.blur()")
        reached = set()
        for _ in range(everything + 5):
            await press(tab, "Tab", 9)
            reached.add(await tab.value("document.activeElement.dataset.number ?? ''"))
        assert {str(number) for number in range(everything)} <= reached
        assert everything > 25

    paged(lab, tmp_path, work)


@pytest.mark.parametrize(("width", "dark"), [(1366, False), (400, True)])
def test_axe_finds_nothing_serious_and_nothing_is_too_wide(
    lab: ProxiedLab, tmp_path: Path, axe: str, width: int, dark: bool
) -> None:
    found: list[Any] = []

    async def work(tab: Tab) -> None:
        await look(tab, width=width, dark=dark)
        await typed(tab, "wifi-loss", "1 %")
        await tab.until("document.querySelector('.row.hand') !== null")
        await tab.until("document.querySelectorAll('canvas').length == 8")
        assert await tab.value("document.documentElement.scrollWidth") <= width
        await tab.value(axe + "; 0")
        await tab.value(
            "axe.run().then(found => { window.found = JSON.stringify(found.violations.map(one => "
            "[one.id, one.impact, one.nodes.map(node => node.html).slice(0, 5)])) }), 0"
        )
        await tab.until("window.found !== undefined")
        found.extend(json.loads(await tab.value("window.found")))
        if "SCREENSHOTS" in os.environ:
            name = f"page-{'dark' if dark else 'light'}-{width}.png"
            await picture(tab, Path(os.environ["SCREENSHOTS"]) / name, width)
        await clicked(tab, "As the scenario says", "[aria-labelledby=link-wifi]")

    paged(lab, tmp_path, work)
    print(found)
    assert [one for one in found if one[1] in ("serious", "critical")] == []


HOSTILE = "<img src=x onerror=alert(1)>"

DOWNLOADS = f"""name: quick
title: "{HOSTILE} & more"
payload: {{size: 12 MB}}
links:
  wifi: {{{WIFI}}}
  lte: {{{LTE}, trace: {{file: lte-walking}}}}
events:
  - {{at: 4 s, link: lte, for: 1 s, outage: true}}
  - {{at: 12 s, link: wifi, for: 3 s, loss: 2 %}}
  - {{after: 11 MB, link: lte, down: 4 Mbit/s}}
"""


def test_downloads_are_chosen_paused_changed_and_what_was_done_runs_in_virtual_time(
    tmp_path: Path, linklab: Callable[..., Called], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a scenario are text on the page, whatever they are."""
    monkeypatch.setenv("LINKLAB_LIVE_TOKEN", TOKEN)
    (tmp_path / "saved").mkdir()
    saved = tmp_path / "saved" / "by-me.yaml"

    async def work(tab: Tab, lab: Live) -> None:
        await tab.until("document.querySelector('#percent').textContent !== ''")
        assert HOSTILE in await tab.value("document.querySelector('h1').textContent")
        await tab.until(
            "document.querySelector('#store').textContent.includes('after 11 MB lte: down 4 Mbit/s')"
        )
        await typed(tab, "wifi-down", "6 Mbit/s")
        await clicked(tab, "Down for 3 s", "[aria-labelledby=link-lte]")
        await tab.until("document.querySelector('#happened').textContent.includes('down for 3 s')")
        await tab.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(saved.parent)
        )
        await typed(tab, "name", "by-me")
        await until(saved.exists)
        if "SCREENSHOTS" in os.environ:
            await picture(tab, Path(os.environ["SCREENSHOTS"]) / "page-download.png", 1366)
        await clicked(tab, "Pause downloads")
        await until(lambda: lab.status()["paused"])
        await tab.value("document.querySelector('#algorithm').value = 'alg1', 0")
        await clicked(tab, "Run it now")
        await until(lambda: lab.status()["running"] is None)
        await tab.until("document.querySelector('#what').textContent.includes('paused')")
        await clicked(tab, "Pause downloads")
        await until(lambda: lab.status()["running"] == "alg1")
        await tab.until("document.querySelector('#what').textContent.includes('alg1 downloads')")
        assert lab.status()["changed"] == [{"link": "wifi", "down_rate_bps": 6_000_000}]
        await clicked(tab, "Back to the scenario's start")
        await until(lambda: not lab.status()["changed"])
        await tab.until(
            "document.querySelector('#said').textContent.includes('as at the scenario')"
        )
        assert lab.status()["running"] in (None, "alg1")
        assert complaints(tab) == []
        lab.process.send_signal(signal.SIGINT)
        lab.process.wait(timeout=60)
        await tab.until("document.querySelector('#lost').textContent.includes('The lab has ended')")
        for words in ("lte-down", "name"):
            await typed(tab, words, "1 Mbit/s")
            await tab.until(
                "document.activeElement.closest('fieldset, section')"
                ".textContent.includes('the lab does not answer')"
            )
            assert await seen(tab, "#lost")

    async def do(lab: Live) -> None:
        async with opened(tmp_path / "browser", f"http://{lab.address}/#token={TOKEN}") as tab:
            await work(tab, lab)

    with live(tmp_path, DOWNLOADS) as lab:
        lab.until(lambda: "downloading" in (tmp_path / "err").read_text())
        asyncio.run(do(lab))
    (rate, down) = [
        one for one in scenarios.load(saved).events if one.down_rate_bps == 6_000_000 or one.carrier
    ]
    assert (down.link, down.carrier, down.duration_s) == ("lte", "down", 3.0)
    assert rate.at_s is not None
    times = [linklab("run", saved, "-a", "alg3", "--json").json["figures"] for _ in range(2)]
    assert times[0] == times[1]
