"""Section `fairness`: measures how downloads share a link with the long TCP connections of others.

A download with many connections takes a larger share of a full link than one with a single
connection. If random losses keep the link from filling, no connection needs to get less.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from bench.common import Bench, Result, target

LINK = "down: 50 Mbit/s, up: 12 Mbit/s, rtt: 40 ms, queue: 250 kB"
"""The queue holds a round trip."""
LOSSES = (0.0, 0.001, 0.01)
SEEDS = 3
ONE, FOUR = 1, 4
"""The numbers of flows of others."""
SHARED = ("curl-wifi", "adaptive-fair", "adaptive", "alg3", "mptcp", "aria2-8")
"""The clients beside four flows; one connection first, for comparison."""
BESIDE = ("curl-wifi", "adaptive-fair", "aria2-8", "aria2-16", "alg3", "adaptive")
"""The clients beside one flow."""
REPLACED = "aria2-8"
"""The usual program for links on which one connection is not enough."""
SIZES = {False: "30 MB", True: "60 MB"}
"""The payload without and with a free link: a download takes 10 s or more."""


def shared_link(bench: Bench, flows: int, *, has_free: bool, loss: float = 0.0) -> Path:
    """Writes a scenario of a link with cubic flows of others, and maybe a free link."""
    name = f"shared-{flows}-{'free' if has_free else 'only'}-{loss * 1e4:.0f}"
    names = ("wifi", "lte") if has_free else ("wifi",)
    links = "".join(f"  {one}: {{{LINK}, loss: {loss * 100:g} %}}\n" for one in names)
    others = "  - {link: wifi, bulk: {congestion_control: cubic}}\n" * flows
    path = bench.work / f"{name}.yaml"
    path.write_text(
        f"name: {name}\npayload: {{size: {SIZES[has_free]}}}\nlinks:\n{links}traffic:\n{others}"
    )
    return path


def _call(file: Path, client: str, seed: int) -> list[object]:
    return ["run", file, "-a", client, "--seed", seed]


def fairness(bench: Bench) -> Result:
    """How a download and others' connections share a link: shares, Jain's index, random loss."""
    seeds = range(1, 2 if bench.quick else SEEDS + 1)
    four = [(has_free, client) for has_free in (False, True) for client in SHARED]
    one = [(loss, client) for loss in LOSSES for client in BESIDE]
    files = {has_free: shared_link(bench, FOUR, has_free=has_free) for has_free in (False, True)}
    lossy = {loss: shared_link(bench, ONE, has_free=False, loss=loss) for loss in LOSSES}
    calls = [
        *(_call(files[has_free], client, seed) for has_free, client in four for seed in seeds),
        *(_call(lossy[loss], client, seed) for loss, client in one for seed in seeds),
    ]
    done = iter([one.json["figures"]["shares"]["wifi"] for one in bench.all("fairness", calls)])
    shares = {case: [next(done) for _ in seeds] for case in four}
    rates = {case: [next(done) for _ in seeds] for case in one}
    bench.say(
        f"Shares of a link of 50 Mbit/s and 40 ms with four cubic flows; medians over {len(seeds)} seeds"
    )
    return {
        "four": [_shared(bench, files[has_free], has_free, shares) for has_free in (False, True)],
        "rates_bps": _beside_one(bench, rates),
    }


def _parts(shared: Any) -> tuple[float, list[float]]:
    """Returns the client's part of the link, and those of the flows."""
    client, *flows = shared["rates_bps"].values()
    total = client + sum(flows)
    return client / total, [flow / total for flow in flows]


def _shared(
    bench: Bench, file: Path, has_free: bool, found: dict[tuple[bool, str], list[Any]]
) -> dict[str, Any]:
    """Prints and returns the shares of each client on one kind of scenario."""
    bench.say()
    bench.say(f"{'with a free link besides' if has_free else 'the only link'} ({file.name})")
    bench.say()
    heads = ("client", "client's share %", "flows' shares %, least to most", "Jain's index")
    rows, result = [], {}
    for client in SHARED:
        runs = found[has_free, client]
        own = statistics.median(_parts(one)[0] for one in runs)
        ranks = zip(*(sorted(_parts(one)[1]) for one in runs), strict=True)
        flows = [statistics.median(rank) for rank in ranks]
        index = statistics.median(one["jain"] for one in runs)
        shown = ", ".join(f"{flow * 100:.1f}" for flow in flows)
        rows.append((f"`{client}`", f"{own * 100:.1f}", shown, f"{index:.3f}"))
        result[client] = {"share": own, "flows": flows, "jain": index}
    bench.markdown(heads, rows)
    return result


def _beside_one(bench: Bench, found: dict[tuple[float, str], list[Any]]) -> dict[str, Any]:
    """Prints and returns what one connection gets beside each client, without and with loss."""
    rates = {
        case: statistics.median(list(one["rates_bps"].values())[1] for one in runs)
        for case, runs in found.items()
    }
    bench.say()
    bench.say("Mbit/s of one cubic flow beside a client, on the only link")
    bench.say()
    bench.markdown(
        ("beside", *(f"{loss * 100:g} % loss" if loss else "no loss" for loss in LOSSES)),
        [
            (f"`{client}`", *(f"{rates[loss, client] / 1e6:.2f}" for loss in LOSSES))
            for client in BESIDE
        ],
    )
    is_fair = all(rates[loss, "adaptive"] >= rates[loss, REPLACED] for loss in LOSSES)
    bench.say()
    bench.say(target(f"no less beside adaptive than beside {REPLACED}", is_fair))
    return {client: {str(loss): rates[loss, client] for loss in LOSSES} for client in BESIDE}
