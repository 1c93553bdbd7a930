"""Sections `repeatability` and `sensitivity`: test whether virtual time repeats exactly, and the
effect of a shift by µs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from linklab.scenario import find

from bench.common import Bench, Done, Result, table, target, variant

COMPARED = ("client.jsonl", "queues.jsonl", "links.jsonl", "h2o-access.jsonl")
"""Files of a run that contain times. All must be the same byte for byte."""

SHORT_BYTES = 100_000_000
SHIFTS_US = (0, 1, 3, 10, 30, 100)


def repeatability(bench: Bench) -> Result:
    """The same run ten times, half of them beside two busy loops on the host."""
    size = SHORT_BYTES if bench.quick else None
    count = 4 if bench.quick else 10
    plain = bench.write(variant("hs-s7", "hs-s7-again", size_bytes=size)) if size else "hs-s7"
    lossy = bench.write(variant("hs-s7", "hs-s7-lossy", size_bytes=size, loss=0.01, jitter_s=0.003))
    bench.say(f"{(size or 250_000_000) / 1e6:.0f} MB by alg3, seed 1, {count} runs of each")
    return {
        "plain": _repeat(bench, "hs-s7", plain, count),
        "lossy": _repeat(bench, "hs-s7 with 1 % loss and 3 ms jitter on Wi-Fi", lossy, count),
    }


def _repeat(bench: Bench, title: str, scenario: Path | str, count: int) -> Result:
    call = ("run", scenario, "-a", "alg3")
    quiet = bench.all(f"{title}: quiet host", [call] * (count - count // 2))
    with busy_loops(2):
        busy = bench.all(f"{title}: busy host", [call] * (count // 2))
    runs = [("quiet", done) for done in quiet] + [("busy", done) for done in busy]
    times = [_download_ns(done) for _, done in runs]
    digests = [_digests(done) for _, done in runs]
    shown = table("run", "host", "download ns", "client.jsonl, SHA-256", left=2)
    for number, ((host, _), time_ns) in enumerate(zip(runs, times, strict=True)):
        digest = digests[number]["client.jsonl"][:16]
        shown.add_row(str(number + 1), host, f"{time_ns:,}".replace(",", " "), digest)
    bench.say(f"\n[bold]{title}[/bold]")
    bench.console.print(shown)
    differing = [name for name in COMPARED if len({one[name] for one in digests}) > 1]
    same_times = len(set(times)) == 1
    bench.say(
        f"{len(set(times))} different download times, range {max(times) - min(times)} ns; "
        + target("identical to the nanosecond", same_times)
    )
    bench.say(
        "byte for byte the same: "
        + (", ".join(name for name in COMPARED if name not in differing) or "nothing")
        + (f"; [red]not: {', '.join(differing)}[/red]" if differing else "")
    )
    return {
        "download_ns": times,
        "hosts": [host for host, _ in runs],
        "identical": same_times,
        "differing_files": differing,
    }


def _download_ns(done: Done) -> int:
    return int(json.loads((done.run_dir / "client.json").read_text())["download_ns"])


def _digests(done: Done) -> dict[str, str]:
    return {
        name: hashlib.sha256((done.run_dir / name).read_bytes()).hexdigest() for name in COMPARED
    }


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keeps `count` cores busy. The loops also end when this process is killed."""
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", "while True: pass"]
    loops: list[subprocess.Popen[bytes]] = []
    try:
        loops.extend(subprocess.Popen(argv) for _ in range(count))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def sensitivity(bench: Bench) -> Result:
    """The same download started some µs later: the least that a bound must allow."""
    shifts = SHIFTS_US[::2] if bench.quick else SHIFTS_US
    seeds = (1, 2) if bench.quick else (1, 2, 3, 4)
    losses = {0.0: (1,), 0.001: seeds, 0.01: seeds}
    bench.say(
        f"hs-s7 with {SHORT_BYTES / 1e6:.0f} MB by alg3, loss on Wi-Fi, client started later by\n"
        f"{', '.join(map(str, shifts))} µs; spread = (max - min) / median over these"
    )
    keys = [(loss, seed, us) for loss in losses for seed in losses[loss] for us in shifts]
    files = {
        loss: bench.write(
            variant("hs-s7", f"hs-s7-loss-{loss * 1e4:.0f}", size_bytes=SHORT_BYTES, loss=loss)
        )
        for loss in losses
    }
    done = bench.all(
        "shifted starts",
        [
            ("run", files[loss], "-a", "alg3", "--seed", seed, "--shift", f"{us * 1e-6:.6f}")
            for loss, seed, us in keys
        ],
    )
    times = {
        key: float(one.json["figures"]["download_s"]) for key, one in zip(keys, done, strict=True)
    }
    shown = table("loss", "seed", "median s", "min s", "max s", "spread %", "sd ms", left=2)
    rows: list[Result] = []
    for loss, of_loss in losses.items():
        groups = [(str(seed), [times[loss, seed, us] for us in shifts]) for seed in of_loss]
        if len(of_loss) > 1:
            groups.append(("all", [value for _, group in groups for value in group]))
        for seed, group in groups:
            row = _spread(group)
            rows.append({"loss": loss, "seed": seed, "download_s": group, **row})
            shown.add_row(
                f"{loss * 100:g} %",
                seed,
                f"{row['median_s']:.4f}",
                f"{row['min_s']:.4f}",
                f"{row['max_s']:.4f}",
                f"{row['spread'] * 100:.3f}",
                f"{row['sd_s'] * 1e3:.2f}",
            )
    bench.console.print(shown)
    for loss in losses:
        floor = max(one["spread"] for one in rows if one["loss"] == loss and one["seed"] != "all")
        bench.say(f"floor at {loss * 100:g} % loss: {floor * 100:.3f} % (widest seed)")
    return {"shifts_us": shifts, "rows": rows, "base": find("hs-s7").name, "bytes": SHORT_BYTES}


def _spread(values: Sequence[float]) -> dict[str, float]:
    median = statistics.median(values)
    return {
        "median_s": median,
        "min_s": min(values),
        "max_s": max(values),
        "spread": (max(values) - min(values)) / median,
        "sd_s": statistics.stdev(values),
    }
