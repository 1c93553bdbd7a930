"""Tests the dashboards in a browser, on a running Grafana that GRAFANA_URL names.

Its Prometheus must have published runs of multilink (`linklab compare`) and of a suite (`linklab
regress`). SCREENSHOTS names a directory for pictures of each dashboard, dark and light, in two
widths.
"""

import asyncio
import base64
import html
import json
import math
import os
import re
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lab_page import window
from linklab.commands.report_browser_test import Tab, needs_browser
from prometheus import DASHBOARDS

POLL_S = 0.25

PATIENCE_S = 60
"""The time for a dashboard to show its data. A browser draws in software, on a busy machine."""

ROW_PX, ABOVE_PX = 38, 190
"""The height of a row of a dashboard's grid, and of what Grafana shows above."""

DRAWN = {
    "timeseries": "<canvas",
    "barchart": "<canvas",
    "state-timeline": "<canvas",
    "table": 'role="columnheader"',
}
"""The HTML in a panel that shows something. Other panels have their figure as text."""


LOADING = r'aria-label="Panel loading bar"|>Loading (?:plugin|Grafana)\b'
"""What Grafana shows while it loads."""


def troubles(page: str, titles: list[str], drawn: Counter[str] | None = None) -> list[str]:
    """Returns what is wrong with a dashboard's final page, if it needs at least this many drawings."""
    text = html.unescape(re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S))
    found = [f"{title} is not there" for title in titles if f">{title}<" not in text]
    found += [
        f"of {count} {what} there are {page.count(what)}"
        for what, count in (drawn or {}).items()
        if page.count(what) < count
    ]
    found += ["a panel is loading"] * len(re.findall(LOADING, page))
    found += ["a panel has no data"] * len(re.findall(r">\s*No data\s*<", text))
    marks = r'(?:aria-label|data-testid)="[^"]*(?:Panel status error|Panel header error)[^"]*"'
    return found + ["a panel shows an error"] * len(re.findall(marks, text))


def test_troubles_are_seen() -> None:
    page = (
        "<div>Queue</div><script>'No data'</script><div>CPU &amp; more</div><span> No data </span>"
        '<button aria-label="data-testid Panel status error"></button>'
        '<div aria-label="Panel loading bar"></div>'
    )
    assert troubles(page, ["Queue", "CPU & more", "Events"]) == [
        "Events is not there",
        "a panel is loading",
        "a panel has no data",
        "a panel shows an error",
    ]
    assert troubles("<h2>Queue</h2>", ["Queue"]) == []
    assert troubles("<canvas>", [], Counter({"<canvas": 1})) == []
    assert troubles("<canvas>", [], Counter({"<canvas": 2})) == ["of 2 <canvas there are 1"]


async def settled(
    tab: Tab, titles: list[str], drawn: Counter[str] | None = None
) -> tuple[float, list[str]]:
    """Returns the time until nothing was wrong twice in a row, and what is still wrong."""
    begun_s, quiet = time.monotonic(), 0
    while True:
        page = await tab.value("document.documentElement.outerHTML")
        left = troubles(page or "", titles, drawn)
        passed_s = time.monotonic() - begun_s
        quiet = 0 if left else quiet + 1
        if quiet == 2 or passed_s > PATIENCE_S:
            return passed_s, left
        await asyncio.sleep(POLL_S)  # The page may begin more requests.


# --- With a running Grafana.


def address_of(grafana: str, name: str, **variables: str) -> str:
    """Returns the address of a dashboard that shows everything. Live lab shows the newest run of
    multilink."""
    asked = dict(variables)
    if name == "live-lab":
        run, began_s, ended_s = newest_run(grafana)
        asked |= {"var-run": run, "from": f"{began_s}000", "to": f"{ended_s + 1}000"}
    return f"{grafana}/d/{DASHBOARDS[name]['uid']}?{urllib.parse.urlencode(asked)}"


def newest_run(grafana: str) -> tuple[str, int, int]:
    """Returns name and slot of the newest published run of multilink."""
    made = "max by (run) (max_over_time(multilink_download_progress_ratio[7d]))"
    values: dict[str, dict[str, float]] = {}
    for what in ("began", "ended"):
        expression = f"last_over_time(linklab_run_{what}_timestamp_seconds[7d]) and on (run) {made}"
        query = {
            "refId": "A",
            "expr": expression,
            "instant": True,
            "datasource": {"uid": "linklab-prometheus"},
        }
        body = json.dumps({"queries": [query], "from": "now-7d", "to": "now"}).encode()
        request = urllib.request.Request(
            f"{grafana}/api/ds/query", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            frames = json.load(answer)["results"]["A"]["frames"]
        values[what] = {
            frame["schema"]["fields"][1]["labels"]["run"]: frame["data"]["values"][1][0]
            for frame in frames
        }
    assert values["ended"], "no run of multilink was published in the last 7 days"
    run = max(values["ended"], key=values["ended"].__getitem__)
    return run, int(values["began"][run]), math.ceil(values["ended"][run])


def panels_of(name: str) -> list[tuple[str, str]]:
    """Returns titles and types of a dashboard's panels. A repeated panel counts once per link of
    most scenarios."""
    return [
        (one["title"].replace("$link", link), one["type"])
        for one in DASHBOARDS[name]["panels"]
        for link in (("Wi-Fi", "LTE") if "$link" in one["title"] else ("",))
    ]


@asynccontextmanager
async def shown(
    address: str, name: str, profile: Path, width: int = 1366
) -> AsyncIterator[tuple[Tab, float]]:
    """Opens a complete dashboard. Yields it and the time until it was complete. Fails if anything
    is wrong."""
    rows = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in DASHBOARDS[name]["panels"])
    titles = [title for title, _ in panels_of(name)]
    drawn = Counter(DRAWN[kind] for _, kind in panels_of(name) if kind in DRAWN)
    height = ABOVE_PX + ROW_PX * rows
    async with window(profile, address, width=width, height=height) as tab:
        passed_s, left = await settled(tab, titles, drawn)
        assert left == []
        yield tab, passed_s


@needs_browser
@pytest.mark.asked_for("GRAFANA_URL")
@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_has_data_in_a_browser(name: str, tmp_path: Path) -> None:
    grafana, pictures = os.environ["GRAFANA_URL"].rstrip("/"), os.environ.get("SCREENSHOTS")

    async def seen(theme: str, width: int) -> float:
        address, profile = address_of(grafana, name, theme=theme), tmp_path / f"{theme}-{width}"
        async with shown(address, name, profile, width) as (tab, passed_s):
            if pictures:
                content = base64.b64decode((await tab.call("Page.captureScreenshot"))["data"])
                Path(pictures, f"{name}-{theme}-{width}.png").write_bytes(content)
            return passed_s

    for theme in ("dark", "light") if pictures else ("dark",):
        for width in (1366, 1600) if pictures else (1366,):
            passed_s = asyncio.run(seen(theme, width))
            print(f"{name}: everything is shown {passed_s:.1f} s after the first request")
