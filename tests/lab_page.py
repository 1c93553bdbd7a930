"""The page of a live lab in a browser: opened with the lab's token, and worked like a user does."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from linklab.commands.report_browser_test import Tab, browser
from tornado.websocket import websocket_connect

TOKEN = "a-token-of-the-tests"


@contextlib.asynccontextmanager
async def window(
    profile: Path, url: str, *options: str, width: int = 1366, height: int = 900
) -> AsyncIterator[Tab]:
    """A page in a browser's window of this size."""
    with browser(profile, "--hide-scrollbars", *options) as address:
        tab = Tab(await websocket_connect(address, max_message_size=1 << 28))
        for domain in ("Runtime", "Page", "Log", "Network"):
            await tab.call(f"{domain}.enable")
        await resize(tab, width, height)
        await tab.call("Page.navigate", url=url)
        yield tab


async def resize(tab: Tab, width: int, height: int = 900) -> None:
    """Gives the window a size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    await tab.call("Emulation.setDeviceMetricsOverride", **size)


@contextlib.asynccontextmanager
async def opened(profile: Path, url: str) -> AsyncIterator[Tab]:
    """The lab's page, once it shows a link."""
    async with window(profile, url) as tab:
        await look(tab, width=1366, dark=False)
        await tab.until("document.querySelectorAll('.link').length > 0")
        yield tab


async def look(tab: Tab, *, width: int, dark: bool) -> None:
    """Gives the window a width, and the user a taste."""
    await resize(tab, width)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    await tab.call("Emulation.setEmulatedMedia", features=[scheme])


async def press(tab: Tab, key: str, code: int) -> None:
    """Presses a key."""
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        await tab.call(
            "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
        )
        text = {}


async def typed(tab: Tab, field: str, words: str) -> None:
    """Types words into the field with this id, and presses Enter."""
    await tab.value(f"document.getElementById({json.dumps(field)}).select()")
    await tab.value(f"document.getElementById({json.dumps(field)}).focus()")
    await tab.call("Input.insertText", text=words)
    await press(tab, "Enter", 13)


async def clicked(tab: Tab, words: str, within: str = "body") -> None:
    """Clicks the button with these words, with the mouse, within the first element of a selector."""
    place = await tab.value(
        f"(() => {{ const one = [...document.querySelector({json.dumps(within)})"
        f".querySelectorAll('button')].find(one => one.textContent === {json.dumps(words)});"
        "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
        "return `${box.x + box.width / 2} ${box.y + box.height / 2}` })()"
    )
    x, y = map(float, place.split())
    for kind in ("mousePressed", "mouseReleased"):
        await tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


async def seen(tab: Tab, selector: str) -> bool:
    """Tells whether an element is in the window, and no other one covers it."""
    found: bool = await tab.value(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        "const box = one.getBoundingClientRect();"
        "return one.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)) })()"
    )
    return found


async def picture(tab: Tab, file: Path, width: int) -> None:
    """Takes a picture of the whole page."""
    height = min(await tab.value("document.documentElement.scrollHeight"), 4000)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = await tab.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    file.write_bytes(base64.b64decode(taken["data"]))


def complaints(tab: Tab) -> list[str]:
    """What the browser has complained of so far: exceptions, refused code, failed requests."""
    found = []
    for event in tab.events:
        parameters: dict[str, Any] = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            found.append(str(parameters["exceptionDetails"]))
        if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            found.append(str(parameters["entry"]))
    return found


def forgive(tab: Tab) -> None:
    """Forgets what the browser logged of answers that the test has asked for, such as refusals."""
    tab.events = [one for one in tab.events if one["method"] != "Log.entryAdded"]


def requested(tab: Tab) -> set[str]:
    """Every URL that the browser has asked for, and every referrer that it has named."""
    sent = [
        one["params"]["request"]
        for one in tab.events
        if one["method"] == "Network.requestWillBeSent"
    ]
    return {one["url"] for one in sent} | {one["headers"].get("Referer", "") for one in sent}


async def until(what: Any, patience_s: float = 30.0) -> float:
    """Waits until a function without arguments is true; the seconds that it took."""
    begun_s = asyncio.get_running_loop().time()
    while not what():
        passed_s = asyncio.get_running_loop().time() - begun_s
        assert passed_s < patience_s, what
        await asyncio.sleep(0.03)  # It is not so yet.
    return asyncio.get_running_loop().time() - begun_s
