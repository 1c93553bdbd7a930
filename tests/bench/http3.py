"""Section `http3`: measures `multilink get` over HTTP/2 and HTTP/3, from quic-go's server for both."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from linklab.core.paths import MULTILINK
from linklab.lab.programs import authority
from linklab.regression.loopback import ADDRESS, LoopbackError, measure, room, sparse

from bench.common import REPOSITORY, Bench, Result

SIZE = "60 MB"
LOSSES = (0, 1, 2)
"""In percent, of both links."""
ROUND_TRIPS_MS = (10, 50, 300)
PROTOCOLS = {"HTTP/2": "--http3=false", "HTTP/3": "--http3-only"}
_COST_BYTES = 200_000_000
_PORT = 8443


def http3(bench: Bench) -> Result:
    """HTTP/2 and HTTP/3 by loss and round trip, and their processor time."""
    programs = bench.work / "http3"
    subprocess.run([REPOSITORY / "emulator/setup/client", "http3", programs], check=True)
    server = f"{programs}/example -tcp -cert {{certificate}} -key {{key}} -www {{directory}}"
    modules = (programs / "modules").read_text().strip()
    cells = [(rtt_ms, loss) for rtt_ms in ROUND_TRIPS_MS for loss in LOSSES]
    where = ("--share", modules, "--share", programs)
    serve = ("--server", f"{server} -bind {{address}}:{{port}}", "--")
    get = ("multilink", "get", "{url}", "--ca-file", "{ca}", "-o", "file", "--json")
    links = ("--link", "wifi=wlan0", "--link", "lte=rmnet0")
    calls = [
        ["exec", _scenario(bench, rtt_ms, loss), *where, *serve, *get, *links, flag]
        for rtt_ms, loss in cells
        for flag in PROTOCOLS.values()
    ]
    done = iter(
        json.loads((one.run_dir / "client.out").read_text())["download_ns"] / 1e9
        for one in bench.all("http3", calls)
    )
    seconds = {f"{rtt_ms} ms, {loss} %": [next(done) for _ in PROTOCOLS] for rtt_ms, loss in cells}
    bench.markdown(
        ("links", *(f"{one}, s" for one in PROTOCOLS)),
        [(name, *(f"{one:.2f}" for one in row)) for name, row in seconds.items()],
    )
    costs = _costs(programs, 1 if bench.quick else 5)
    for name, cost_s in costs.items():
        bench.say(f"{name}: {cost_s / (_COST_BYTES / 1e6) * 1e3:.2f} ms of processor time per MB")
    return {"seconds": seconds, "cpu_s": costs}


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
        at = f"{ADDRESS}:{_PORT}"
        argv: list[str | Path] = ["-tcp", "-bind", at, "-cert", made.cert, "-key", made.key]
        argv += ["-www", directory]
        log = directory / "server.log"
        with log.open("wb") as said:
            server = subprocess.Popen([programs / "example", *argv], stdout=said, stderr=said)
        try:
            found: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
            for _ in range(rounds):
                for name, flag in PROTOCOLS.items():
                    get = [MULTILINK, "get", f"https://{at}/file", flag, "--link", "lo", "-o"]
                    get += [directory / "out", "--ca-file", made.ca_cert, "--quiet"]
                    found[name].append(_measured(get, directory / "out"))
        finally:
            server.terminate()
            server.wait()
    return {name: statistics.median(costs) for name, costs in found.items()}


def _measured(get: list[object], output: Path) -> float:
    """Returns the processor time of a download in seconds, once the server listens."""
    for _ in range(50):
        with suppress(LoopbackError):
            return measure(get, _COST_BYTES, output).cpu_s
        time.sleep(0.1)
    return measure(get, _COST_BYTES, output).cpu_s
