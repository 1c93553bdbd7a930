"""Section `client`: measures processor time and memory of multilink, beside curl and aria2.

Virtual time does not measure these. So this uses the real clock, with H2O on the loopback device,
TLS, and files in memory if there is room. Processor time is that of the client alone.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from linklab.core.paths import MULTILINK
from linklab.regression import loopback
from linklab.regression.loopback import Cost, LoopbackServer, measure
from linklab.runs.clients import aria2

from bench.common import Bench, Result, check_installed, table, target

PACKAGES = {"curl": "curl", "aria2c": "aria2", "h2o": "h2o"}
"""The programs that run on the host here, and their Debian packages."""
TARGET_BPS = 2e9
"""Bits per second of processor time."""
TARGET_CPU_S = 0.25
"""Processor seconds for 50 MB."""
TARGET_BYTES = 20 << 20
"""Resident, in a download of 8 GiB."""


def client(bench: Bench) -> Result:
    """Processor time and memory of multilink, curl and aria2 over loopback with TLS."""
    check_installed(PACKAGES)
    size = 250_000_000 if bench.quick else 1_000_000_000
    rounds = 3 if bench.quick else 5
    large = 1 << 30 if bench.quick else 8 << 30
    loads = os.getloadavg()
    with loopback.room(large, bench.work) as room, loopback.serving(room) as server:
        loopback.sparse(server.files / "file", size)
        loopback.sparse(server.files / "large", large)
        programs = {
            "curl": ("curl", "-sSf", "--cacert", server.ca, "-o", room / "out", server.url("file")),
            "curl --http1.1": (
                "curl",
                "-sSf",
                "--http1.1",
                "--cacert",
                server.ca,
                "-o",
                room / "out",
                server.url("file"),
            ),
            "aria2c -x2": (
                *aria2.command(
                    server.url("file"),
                    connections=2,
                    devices=["lo"],
                    ca_file=str(server.ca),
                    output=str(room / "out"),
                ),
                "--allow-overwrite=true",
            ),
            "multilink, one link": _multilink(
                server, room, "file", "--link", "lo", "--algorithm", "single"
            ),
            "multilink, two links": _multilink(server, room, "file", *_TWO),
            "multilink proxy": None,
        }
        costs: dict[str, list[Cost]] = {name: [] for name in programs}
        for number in range(rounds):
            for name, argv in programs.items():
                cost = measure(argv, size, room / "out") if argv else _proxied(server, room, size)
                costs[name].append(cost)
            bench.note(f"round {number + 1} of {rounds}")
        memory = measure(_multilink(server, room, "large", *_TWO), large, room / "out")
    bench.say(
        f"{size / 1e6:.0f} MB over loopback with TLS, minimum (median) of {rounds} rounds; load\n"
        f"average {loads[0]:.1f} before; multilink also takes the file's SHA-256, and its proxy\n"
        "serves a curl whose own time is not counted"
    )
    rows = _show(bench, costs, size)
    one = rows["multilink, two links"]
    bench.say(
        f"multilink: {one['bps_per_core'] / 1e9:.2f} Gbit/s per core; "
        + target("2", one["bps_per_core"] >= TARGET_BPS)
        + f"; {one['cpu_s_per_50_mb']:.3f} s per 50 MB; "
        + target("0.25", one["cpu_s_per_50_mb"] <= TARGET_CPU_S)
    )
    bench.say(
        f"{large / 2**30:.0f} GiB: {memory.peak_bytes / 2**20:.1f} MiB resident, "
        f"{large * 8 / memory.wall_s / 1e9:.2f} Gbit/s; "
        + target("20 MiB", memory.peak_bytes <= TARGET_BYTES)
    )
    return {
        "bytes": size,
        "rounds": rounds,
        "load_average_before": loads,
        "rows": rows,
        "large_bytes": large,
        "large_peak_bytes": memory.peak_bytes,
        "large_wall_s": memory.wall_s,
        "large_cpu_s": memory.cpu_s,
    }


def _show(bench: Bench, costs: dict[str, list[Cost]], size: int) -> dict[str, Result]:
    shown = table(
        "", "s of CPU\nper 50 MB", "Gbit/s\nper core", "CPU per MB,\ncurl = 1", "Gbit/s", "peak MiB"
    )
    reference = min(one.cpu_s for one in costs["curl"])
    rows: dict[str, Result] = {}
    for name, of_one in costs.items():
        cpu, wall = [one.cpu_s for one in of_one], [one.wall_s for one in of_one]
        per_50_mb = [value * 50e6 / size for value in cpu]
        peak = max(one.peak_bytes for one in of_one)
        rows[name] = {
            "cpu_s": cpu,
            "wall_s": wall,
            "peak_bytes": peak,
            "cpu_s_per_50_mb": min(per_50_mb),
            "bps_per_core": size * 8 / min(cpu),
            "cpu_by_curl": min(cpu) / reference,
        }
        shown.add_row(
            name,
            f"{min(per_50_mb):.3f} ({statistics.median(per_50_mb):.3f})",
            f"{size * 8 / min(cpu) / 1e9:.2f}",
            f"{min(cpu) / reference:.2f}",
            f"{size * 8 / min(wall) / 1e9:.2f}",
            f"{peak / 2**20:.1f}",
        )
    bench.console.print(shown)
    return rows


_TWO = ("--link", "wifi=lo", "--link", "lte=lo")


def _multilink(server: LoopbackServer, room: Path, name: str, *options: str) -> tuple[object, ...]:
    return (
        MULTILINK,
        "get",
        server.url(name),
        *options,
        "--ca-file",
        server.ca,
        "--quiet",
        "-o",
        room / "out",
    )


def _proxied(server: LoopbackServer, room: Path, size: int) -> Cost:
    """Returns the proxy's cost of a file that curl fetches through its gateway."""
    argv = [
        *map(
            str,
            (
                MULTILINK,
                "proxy",
                "--listen",
                f"{loopback.ADDRESS}:0",
                *_TWO,
                "--ca-file",
                server.ca,
            ),
        ),
    ]
    begun = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1].decode()
        read = ("curl", "-sSf", "-o", room / "out", f"{address}/{server.url('file')}")
        started = time.monotonic()
        measure(read, size, room / "out")
        wall_s = time.monotonic() - started
        peak = loopback.peak_bytes(process.pid)
        process.send_signal(signal.SIGTERM)
        cost = loopback.reap(process, begun)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
    return Cost(cost.cpu_s, wall_s, peak)
