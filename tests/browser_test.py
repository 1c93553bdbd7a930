"""The dashboards in a browser, on a Grafana that somebody has put up: GRAFANA_URL names it.

Its Prometheus has published runs: of multilink (`linklab compare`), and of a suite (`linklab regress`).
SCREENSHOTS names a directory that gets a picture of each dashboard, dark and light, as wide as a
laptop and wider.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus import DASHBOARDS

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PATIENCE_MS = 20_000
"""By the clock of the page, which stands still while it waits for an answer."""

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no browser is installed: apt-get install chromium"
)


def browse(profile: Path, url: str, *wanted: str, width: int = 1366) -> str:
    """Opens a page, tall enough for all of a dashboard, and returns what the browser says of it."""
    assert BROWSER is not None
    options = [
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--window-size={width},2200",
        f"--virtual-time-budget={PATIENCE_MS}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        *wanted,
    ]
    done = subprocess.run(
        [BROWSER, *options, url], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def troubles(page: str, titles: list[str]) -> list[str]:
    """What is wrong with a dashboard, by its page as the browser has it in the end."""
    text = html.unescape(re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S))
    found = [f"{title} is not there" for title in titles if f">{title}<" not in text]
    found += ["a panel has no data"] * len(re.findall(r">\s*No data\s*<", text))
    marks = r'(?:aria-label|data-testid)="[^"]*(?:Panel status error|Panel header error)[^"]*"'
    return found + ["a panel shows an error"] * len(re.findall(marks, text))


def test_troubles_are_seen() -> None:
    page = (
        "<div>Queue</div><script>'No data'</script><div>CPU &amp; more</div><span> No data </span>"
        '<button aria-label="data-testid Panel status error"></button>'
    )
    assert troubles(page, ["Queue", "CPU & more", "Events"]) == [
        "Events is not there",
        "a panel has no data",
        "a panel shows an error",
    ]
    assert troubles("<h2>Queue</h2>", ["Queue"]) == []


class _Late(BaseHTTPRequestHandler):
    """A page that is filled by what it asks for later, and goes on asking, as Grafana's are."""

    def do_GET(self) -> None:
        page = (
            "<div id=panel>Loading</div><script>const ask = () => fetch('/data')"
            ".then(answer => answer.text()).then(text => { panel.innerText = text });"
            "setTimeout(() => { ask(); setInterval(ask, 2000) }, 3000)</script>"
        )
        content = b"No data" if self.path == "/data" else page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def late_page() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Late)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@needs_browser
def test_the_browser_waits_for_what_comes_late(late_page: str, tmp_path: Path) -> None:
    page = browse(tmp_path / "profile", late_page, "--dump-dom")
    assert troubles(page, []) == ["a panel has no data"]


# --- On a Grafana, where there is one.


@pytest.fixture(scope="module")
def grafana() -> str:
    """Its address."""
    address = os.environ.get("GRAFANA_URL")
    if not address:
        pytest.skip("GRAFANA_URL is not set: no Grafana at hand")
    return address.rstrip("/")


def address_of(grafana: str, name: str, **variables: str) -> str:
    """A dashboard with everything in it: of Live lab, the newest run of multilink."""
    asked = {"kiosk": "", **variables}
    if name == "live-lab":
        run, began_s, ended_s = newest_run(grafana)
        asked |= {"var-run": run, "from": f"{began_s}000", "to": f"{ended_s}000"}
    return f"{grafana}/d/{DASHBOARDS[name]['uid']}?{urllib.parse.urlencode(asked)}"


def newest_run(grafana: str) -> tuple[str, int, int]:
    """The newest run of multilink that was published: its name and its slot."""
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
    return run, round(values["began"][run]), round(values["ended"][run])


@needs_browser
@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_has_data_in_a_browser(grafana: str, name: str, tmp_path: Path) -> None:
    titles = [one["title"] for one in DASHBOARDS[name]["panels"] if "$" not in one["title"]]
    page = browse(tmp_path / "profile", address_of(grafana, name), "--dump-dom")
    assert troubles(page, titles) == []


@needs_browser
@pytest.mark.parametrize("width", [1366, 1600])
@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_picture_of_each_dashboard(
    grafana: str, name: str, theme: str, width: int, tmp_path: Path
) -> None:
    directory = os.environ.get("SCREENSHOTS")
    if not directory:
        pytest.skip("SCREENSHOTS is not set: no pictures are wanted")
    picture = Path(directory, f"{name}-{theme}-{width}.png").absolute()
    address = address_of(grafana, name, theme=theme)
    browse(tmp_path / "profile", address, f"--screenshot={picture}", width=width)
    assert picture.read_bytes().startswith(b"\x89PNG")
