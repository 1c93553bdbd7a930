"""Section `http3`: measures `multilink get` over HTTP/2 and HTTP/3, from quic-go's server for both."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

from conftest import REPOSITORY
from linklab.core.free_ports import free_ports
from linklab.core.paths import MULTILINK
from linklab.lab.programs import authority
from linklab.regression.loopback import ADDRESS, listening, measure, room, sparse

from bench.common import Bench, Result

SIZE = "60 MB"
LOSSES = (0, 1, 2)
"""In percent, of both links."""
ROUND_TRIPS_MS = (10, 50, 300)
PROTOCOLS = {"HTTP/2": "--http3=false", "HTTP/3": "--http3-only"}
_COST_BYTES = 200_000_000


def http3(bench: Bench) -> Result:
    """HTTP/2 and HTTP/3 by loss and round trip, over five seeds, and their processor time."""
    programs = bench.work / "http3"
    subprocess.run([REPOSITORY / "emulator/setup/client", "http3", programs], check=True)
    server = f"{programs}/example -tcp -cert {{certificate}} -key {{key}} -www {{directory}}"
    modules = (programs / "modules").read_text().strip()
    cells = [(rtt_ms, loss) for rtt_ms in ROUND_TRIPS_MS for loss in LOSSES]
    where = ("--share", modules, "--share", programs)
    serve = ("--server", f"{server} -bind {{address}}:{{port}}", "--")
    get = ("multilink", "get", "{url}", "--ca-file", "{ca}", "-o", "file", "--json")
    links = ("--link", "wifi=wlan0", "--link", "lte=rmnet0")
    seeds = range(1, 2 if bench.quick else 6)
    calls = [
        ["exec", _scenario(bench, rtt_ms, loss), "--seed", seed, *where, *serve, *get, *links, flag]
        for rtt_ms, loss in cells
        for flag in PROTOCOLS.values()
        for seed in seeds
    ]
    done = iter(
        json.loads((one.run_dir / "client.out").read_text())["download_ns"] / 1e9
        for one in bench.all("http3", calls)
    )
    seconds = {
        f"{rtt_ms} ms, {loss} %": [sorted(next(done) for _ in seeds) for _ in PROTOCOLS]
        for rtt_ms, loss in cells
    }
    bench.markdown(
        ("links", *(f"{one}, s" for one in PROTOCOLS)),
        [(name, *map(_spread, row)) for name, row in seconds.items()],
    )
    costs = _costs(programs, 1 if bench.quick else 5)
    for name, cost_s in costs.items():
        bench.say(f"{name}: {cost_s / (_COST_BYTES / 1e6) * 1e3:.2f} ms of processor time per MB")
    return {"seconds": seconds, "cpu_s": costs}


def _spread(ordered: list[float]) -> str:
    """Returns the median, with least and most in brackets."""
    return f"{statistics.median(ordered):.2f} ({ordered[0]:.2f} to {ordered[-1]:.2f})"


def _scenario(bench: Bench, rtt_ms: int, loss: int) -> Path:
    path = bench.work / f"http3-{rtt_ms}-{loss}.yaml"
    links = "".join(
        f"  {name}: {{down: {down} Mbit/s, up: {up} Mbit/s, rtt: {rtt_ms} ms, loss: {loss} %}}\n"
        for name, down, up in (("wifi", 80, 20), ("lte", 50, 10))
    )
    path.write_text(f"name: {path.stem}\npayload: {{size: {SIZE}}}\nlinks:\n{links}")
    return path


def _costs(programs: Path, rounds: int) -> dict[str, float]:
    """Returns the median processor time of a download over the loopback device."""
    with room(2 * _COST_BYTES) as directory:
        sparse(directory / "file", _COST_BYTES)
        made = authority.ensure(directory / "authority", (ADDRESS,))
        port, out = free_ports(1), directory / "out"
        at = f"{ADDRESS}:{port}"
        server: list[str | Path] = [programs / "example", *f"-tcp -bind {at}".split()]
        server += ["-cert", made.cert, "-key", made.key, "-www", directory]
        get = [MULTILINK, "get", f"https://{at}/file", "--link", "lo", "-o", out, "--quiet"]
        get += ["--ca-file", made.ca_cert]
        found: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
        with listening("quic-go", server, port, directory / "server.log"):
            for _ in range(rounds):
                for name, flag in PROTOCOLS.items():
                    found[name].append(measure([*get, flag], _COST_BYTES, out).cpu_s)
    return {name: statistics.median(costs) for name, costs in found.items()}
