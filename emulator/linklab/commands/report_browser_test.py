"""Tests a report in a browser: all charts are drawn, without network requests or errors."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from linklab.commands.cli import main
from linklab.commands.report_test import HOSTILE, made
from linklab.core import records
from linklab.core.paths import REPOSITORY
from linklab.core.records import FILES, ClientRecord, QueueRecord
from linklab.core.records_test import sampled
from linklab.runs.time_series_test import EVENTS
from linklab.scenario import Scenario

_OWN = REPOSITORY / "build" / "browser" / "chromium"
CHROMIUM = str(_OWN) if _OWN.exists() else shutil.which("chromium") or shutil.which("google-chrome")
"""A browser: that of emulator/setup/browser.py, else this machine's."""

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make browser")
pytestmark = needs_browser


class Tab:
    """A page in a browser, by the DevTools protocol."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket = socket
        self._calls = 0
        self.events: list[dict[str, Any]] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._calls += 1
        asked = {"id": self._calls, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(asked))
        while True:
            message = await self._socket.read_message()
            assert message is not None, "the browser has gone"
            found: dict[str, Any] = json.loads(message)
            if found.get("id") == self._calls:
                assert "error" not in found, found
                result: dict[str, Any] = found.get("result", {})
                return result
            self.events.append(found)

    async def value(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression)
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        for _ in range(300):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)  # The page is not there yet.
        raise AssertionError(f"never came: {expression}")


@contextlib.contextmanager
def browser(profile: Path, *more: str) -> Iterator[str]:
    """A browser with these options besides, and the address of its only tab."""
    process = subprocess.Popen(
        [
            *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--remote-debugging-port=0", "--remote-allow-origins=*"),
            f"--user-data-dir={profile}",
            *more,
            "about:blank",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        ports = (re.search(r"ws://127\.0\.0\.1:(\d+)/", line) for line in process.stderr)
        port = next(found[1] for found in ports if found)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            (tab,) = [one for one in json.load(answer) if one["type"] == "page"]
        yield tab["webSocketDebuggerUrl"]
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def devtools(tmp_path: Path) -> Iterator[str]:
    """The address of a browser's only tab."""
    with browser(tmp_path / "browser") as address:
        yield address


def runs(parent: Path, small: Scenario) -> None:
    """Two clients, one with a name that would be markup, three runs each."""
    for who, slower in (("alg3", 0.0), (HOSTILE, 0.5)):
        for seed in (1, 2, 3):
            run_dir = made(parent, who, seed, small, 2 + slower + seed / 10)
            (run_dir / FILES[ClientRecord]).write_text(EVENTS)
            sent = [sampled(step / 2, "wifi", step * 250_000) for step in range(1, 6)]
            (run_dir / FILES[QueueRecord]).write_bytes(b"".join(map(records.line, sent)))


async def look(address: str, page: Path) -> tuple[list[tuple[int, int]], list[str], list[str]]:
    """The page's widths as wanted and as they came out, what it asked for, and what it complained
    about, in both themes on a laptop and on a phone."""
    tab = Tab(await websocket_connect(address, max_message_size=1 << 28))
    for domain in ("Page", "Runtime", "Log", "Network"):
        await tab.call(f"{domain}.enable")
    widths = []
    for width, theme in ((1366, "light"), (400, "dark")):
        await tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": theme}
        await tab.call("Emulation.setEmulatedMedia", features=[scheme])
        await tab.call("Page.navigate", url=page.as_uri())
        await tab.until("document.readyState == 'complete'")
        await tab.value("document.querySelectorAll('details').forEach((one) => one.open = true)")
        count = await tab.value("document.querySelectorAll('.chart').length")
        for number in range(count):
            chart = f"document.querySelectorAll('.chart')[{number}]"
            await tab.value(f"{chart}.scrollIntoView()")
            await tab.until(f"{chart}.querySelector('svg') !== null")
        assert count == 5, "times, and rates and requests of two clients"
        widths.append((width, await tab.value("document.documentElement.scrollWidth")))
    asked = [
        one["params"]["request"]["url"]
        for one in tab.events
        if one.get("method") == "Network.requestWillBeSent"
    ]
    complaints = [
        json.dumps(one["params"])
        for one in tab.events
        if one.get("method")
        in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    ]
    return widths, asked, complaints


def test_a_page_is_drawn_without_network_or_complaint(
    tmp_path: Path, small: Scenario, devtools: str
) -> None:
    runs(tmp_path / "runs", small)
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "runs"), "-o", str(page)]) == 0
    widths, asked, complaints = asyncio.run(look(devtools, page))
    assert all(came <= wanted for wanted, came in widths), "nothing is scrolled to but tables"
    assert asked == [page.as_uri()] * 2
    assert complaints == []
