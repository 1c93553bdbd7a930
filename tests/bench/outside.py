"""Section `outside`: compares round trips of datagrams by SOCKS5 with the rates and `rtt` of their link.

Programs outside the lab reach its links by `multilink proxy` on the client host. Here a program beside
the proxy does, so that virtual time shows each nanosecond.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.common import PROBES, REPOSITORY, Bench, Result, table, target

AIM_US = 2.0
HEADERS_BYTES = 14 + 20 + 8
SIZES = (0, 1, 100, 300, 1000, 1472)
LINKS = {"wlan0": (20, 5, 20), "rmnet0": (10, 3, 60)}
"""Each device's rates down and up in Mbit/s, and round trip in ms."""

KEYS = [f"down: {down} Mbit/s, up: {up} Mbit/s, rtt: {ms} ms" for down, up, ms in LINKS.values()]


def probe(file: Path, device: str) -> tuple[object, ...]:
    """Returns the words of `linklab` that send the datagrams over a link."""
    multilink = REPOSITORY / "build/multilink"
    return ("exec", file, "--", "python3", PROBES / "associate.py", multilink, device, *SIZES)


def errors_us(run_dir: Path, device: str) -> Sequence[float]:
    """Returns how much longer than it should each round trip took."""
    down, up, rtt_ms = LINKS[device]
    return [
        took_ns / 1e3 - rtt_ms * 1e3 - (HEADERS_BYTES + size) * 8 * (1 / down + 1 / up)
        for size, took_ns in json.loads((run_dir / "client.out").read_text())
    ]


def outside(bench: Bench) -> Result:
    """Datagrams of programs outside, by SOCKS5."""
    file = bench.links("outside", wifi=KEYS[0], lte=KEYS[1])
    shown = table("device", *(f"{size} B" for size in SIZES))
    rows = {}
    done = bench.all("outside", [probe(file, device) for device in LINKS])
    for device, one in zip(LINKS, done, strict=True):
        rows[device] = errors_us(one.run_dir, device)
        shown.add_row(device, *(f"{error:+.2f}" for error in rows[device]))
    bench.say("\n[bold]UDP by SOCKS5[/bold] (round trips beyond link and air time, µs)")
    bench.console.print(shown)
    worst = max(abs(error) for row in rows.values() for error in row)
    bench.say(f"worst {worst:.2f} µs; " + target(f"{AIM_US:g} µs", worst <= AIM_US))
    return {"rows": rows, "worst_us": worst}
