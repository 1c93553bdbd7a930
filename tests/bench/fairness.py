"""Section `fairness`: measures the share that one connection gets of a link beside a whole
download.

A download with many connections takes a larger share of a full link than one with a single
connection. If random losses keep the link from filling, no connection needs to get less.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from shlex import split

from linklab.core.paths import MULTILINK
from linklab.runs.clients import aria2

from bench.common import PROBES, Bench, Result, check_installed, table, target

LOSSES = (0.0, 0.001, 0.01)
PACKAGES = {"curl": "curl", "aria2c": "aria2"}
SECONDS = 15
"""The duration of curl's download."""
SEEDS = 5
REPLACED = "aria2-8"
"""The usual program for links on which one connection is not enough."""
SIZE = "400 MB"
"""More than the link carries in that time."""
MULTILINK_GET = (
    str(MULTILINK),
    *split("get {url} --link wifi=wlan0 --link lte=rmnet0 --ca-file {ca} -o beside"),
)
BESIDE: dict[str, Sequence[str]] = {
    "nothing": (),
    "curl": ("curl", "-s", "--cacert", "{ca}", "-o", "beside", "--interface", "wlan0", "{url}"),
    **{
        f"aria2-{n}": aria2.command(
            "{url}", connections=n, devices=["wlan0"], ca_file="{ca}", output="beside"
        )
        for n in (8, 16)
    },
    "alg3": (*MULTILINK_GET, "--algorithm", "alg3"),
    "adaptive": MULTILINK_GET,
    "adaptive -c 6": (*MULTILINK_GET, "--connections", "6"),
}
"""Programs under test. Those of multilink also use another link."""


def _shared(bench: Bench, loss_ratio: float) -> Path:
    """Writes a scenario of two links with this loss, whose queues hold a round trip."""
    link = (
        f"down: 50 Mbit/s, up: 12 Mbit/s, rtt: 40 ms, queue: 250 kB, loss: {loss_ratio * 100:g} %"
    )
    return bench.links(f"shared-{loss_ratio * 1e4:.0f}", wifi=link, lte=link, size=SIZE)


def fairness(bench: Bench) -> Result:
    """What one curl gets of a link beside other downloads, with and without random loss."""
    check_installed(PACKAGES)
    seeds = range(1, 2 if bench.quick else SEEDS + 1)
    files = {loss: _shared(bench, loss) for loss in LOSSES}
    cases = [(loss, name, seed) for loss in LOSSES for name in BESIDE for seed in seeds]
    calls = [_call(files[loss], BESIDE[name], seed) for loss, name, seed in cases]
    came: dict[tuple[float, str], list[float]] = {}
    for (loss, name, _), done in zip(cases, bench.all("fairness", calls), strict=True):
        received_bytes = int((done.run_dir / "client.out").read_text())
        came.setdefault((loss, name), []).append(received_bytes * 8 / SECONDS)
    rates_bps = {case: statistics.median(values) for case, values in came.items()}
    shown = table("curl beside", *(_titled(loss) for loss in LOSSES))
    for name in BESIDE:
        shown.add_row(name, *(f"{rates_bps[loss, name] / 1e6:.2f}" for loss in LOSSES))
    bench.say(f"Mbit/s of a link of 50 in {SECONDS} s, medians of {len(seeds)} seeds")
    bench.console.print(shown)
    is_fair = all(rates_bps[loss, "adaptive"] >= rates_bps[loss, REPLACED] for loss in LOSSES)
    bench.say(target(f"no less beside adaptive than beside {REPLACED}", is_fair))
    return {
        "rates_bps": {
            name: {str(loss): rates_bps[loss, name] for loss in LOSSES} for name in BESIDE
        },
    }


def _titled(loss_ratio: float) -> str:
    return f"{loss_ratio * 100:g} % loss" if loss_ratio else "no loss"


def _call(file: Path, command: Sequence[str], seed: int) -> list[object]:
    probe = PROBES / "beside.py"
    words = ["exec", file, "--seed", seed, "--", "python3", probe, "wlan0", SECONDS, *command]
    return list(words)
