"""Section `live`: measures the rate up to which a live lab in the guest keeps up with real time."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from conftest import command
from free_ports import free_port
from linklab.models.layer import STEP_S

from bench.common import Bench, BenchError, Result, environment, percent, table, target

RATES_MBIT = (60, 100, 130, 150, 180, 220, 260)
SECONDS = 12
SHARE = 0.6
"""Wi-Fi's share of the total rate. LTE has the rest, and carriers that follow the load every 20 ms.
"""

TARGET_MBIT, TARGET_ERROR = 130, 0.02


def live(bench: Bench) -> Result:
    """Total rates of both links in real time, with player and exporter, beside virtual time."""
    shown = table("both links", "virtual s", "live s", "slower", "late ms", "", left=1)
    rates = RATES_MBIT[1:3] if bench.quick else RATES_MBIT
    rows = []
    for rate in rates:
        wifi = round(rate * SHARE)
        file = bench.links(
            f"live-{rate}",
            wifi=f"down: {wifi} Mbit/s, up: 20 Mbit/s, rtt: 15 ms",
            lte=f"down: {rate - wifi} Mbit/s, up: 10 Mbit/s, rtt: 40 ms, "
            "carriers: {count: 2, first: 99 %, delay: 20 ms}",
            size=f"{rate * SECONDS // 8} MB",
        )
        (virtual,) = bench.all(f"{rate} Mbit/s, virtual", [("run", file, "-a", "alg3")])
        expected_s = virtual.json["figures"]["download_s"]
        took_s, late_s = _watched(bench, file)
        error = took_s / expected_s - 1
        rows.append(
            {
                "total_mbit": rate,
                "virtual_s": expected_s,
                "live_s": took_s,
                "error": error,
                "late_s": late_s,
            }
        )
        good = late_s < STEP_S and error <= TARGET_ERROR
        shown.add_row(
            f"{rate} Mbit/s",
            f"{expected_s:.2f}",
            f"{took_s:.2f}",
            percent(error, 1),
            f"{late_s * 1e3:.1f}",
            "[green]keeps up[/green]" if good else "[red]does not[/red]",
        )
    bench.say("alg3, 12 s of load, metrics scraped every second; late: the worst of the run")
    bench.console.print(shown)
    highest = max(
        (
            row["total_mbit"]
            for row in rows
            if row["late_s"] < STEP_S and row["error"] <= TARGET_ERROR
        ),
        default=0,
    )
    bench.say(f"highest rate that it keeps up with: {highest} Mbit/s")
    bench.say(target(f"{TARGET_MBIT} Mbit/s within {TARGET_ERROR:.0%}", highest >= TARGET_MBIT))
    return {"rows": rows, "highest_mbit": highest}


def _watched(bench: Bench, file: Path) -> tuple[float, float]:
    """Returns download time and worst lateness of a live run that is scraped as by Prometheus."""
    port = free_port()
    out = bench.work / "live" / file.stem
    process = subprocess.Popen(
        command(
            "live",
            file,
            "-a",
            "alg3",
            "--place",
            "guest",
            "--listen",
            f"127.0.0.1:{port}",
            "--out",
            out,
        ),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    worst_s = 0.0
    try:
        while not (summaries := list(out.glob("*/*/summary.json"))):
            if process.poll() is not None:
                raise BenchError(f"linklab live ended: {(process.stderr or io.StringIO()).read()}")
            time.sleep(1)
            worst_s = max(worst_s, _scraped_lateness(port))
        figures = json.loads(summaries[0].read_text())
        links = (summaries[0].parent / "links.jsonl").read_text().splitlines()
        worst_s = max(worst_s, *(float(json.loads(line)["late_s"]) for line in links))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return float(figures["download_s"]), worst_s


def _scraped_lateness(port: int) -> float:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return 0.0
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("linklab_lateness_seconds{")
    ]
    return max(values, default=0.0)
