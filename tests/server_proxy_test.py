"""Tests the proxy before H2O in virtual time: what its round trip costs, and that it speaks Multipath TCP."""

from pathlib import Path

import pytest
from conftest import Linklab, lines, succeeded

WAITS = 3
"""Round trips beyond the proxy: to connect, for TLS 1.3, and for the file."""


def scenario(directory: Path, proxy_ms: int, size: str) -> Path:
    file = directory / f"proxy-{proxy_ms}.yaml"
    file.write_text(
        f"name: {file.stem}\npayload: {{size: {size}}}\nnetwork: {{proxy: {proxy_ms} ms}}\nlinks:\n"
        "  wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}\n"
        "  lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 60 ms}\n"
    )
    return file


def test_each_wait_beyond_the_proxy_takes_its_round_trip(linklab: Linklab, tmp_path: Path) -> None:
    times = [
        succeeded(linklab, "run", scenario(tmp_path, proxy_ms, "30 kB"), "-a", "curl-wifi").json[
            "figures"
        ]["download_s"]
        for proxy_ms in (20, 120)
    ]
    assert times[1] - times[0] == pytest.approx(WAITS * 0.1, abs=0.002)


def test_it_speaks_multipath_tcp_with_the_client(linklab: Linklab, tmp_path: Path) -> None:
    done = succeeded(linklab, "run", scenario(tmp_path, 20, "5 MB"), "-a", "mptcp")
    assert all(one["share"] > 0.2 for one in done.json["figures"]["links"].values())
    assert {one["link"] for one in lines(done.run_dir / "subflows.jsonl")} == {"wifi", "lte"}


def test_it_stands_before_h2o_alone(linklab: Linklab, tmp_path: Path) -> None:
    done = linklab(
        *("exec", scenario(tmp_path, 20, "100 kB"), "--server", "python3 -m http.server {port}"),
        *("--port", "8000", "--", "true"),
    )
    assert done.code == 1
    assert "network: proxy" in done.err
