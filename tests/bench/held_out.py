"""Section `held_out`: the headline. All clients in scenarios that no constant was chosen by.

`algorithms` judges `adaptive` by the tuned set: the scenarios that its constants were chosen with.
This section draws 40 others by the release's version (`held_out_scenarios.py`).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from linklab.core.version import own_version
from linklab.places.guest import kernel
from linklab.runs import clients
from linklab.scenario import parse

from bench.algorithms import MOST_BEHIND
from bench.common import Bench, Result
from bench.fairness import FOUR, shared_link
from bench.held_out_scenarios import KINDS, draw_all, series

SEEDS = 3
CURL = "curl, best link"
CLIENTS = (
    *("adaptive", "adaptive-fair", "alg1", "alg2", "alg3"),
    *("aria2-2", "aria2-8", "aria2-16", CURL, "mptcp"),
    *(name for name in ("noq", "tquic") if clients.is_compiled_here(name)),
)
RUN = (*(name for name in CLIENTS if name != CURL), "curl-wifi", "curl-lte")
WORST = 5


def held_out(bench: Bench) -> Result:
    """The headline: all clients in 40 scenarios that this release's version seeds."""
    seeds = bench.runs or (1 if bench.quick else SEEDS)
    version = own_version()
    kinds: dict[str, str] = {}
    for kind, text in draw_all(version):
        name = parse(text).name
        kinds[name] = kind
        (bench.work / f"{name}.yaml").write_text(text)
    if bench.quick:
        kinds = {name: kind for name, kind in kinds.items() if name.endswith("-1")}
    shared = shared_link(bench, FOUR, has_free=True)
    report = bench.campaign(
        "held-out",
        {
            "matrices": [
                {
                    "scenarios": [*(f"./{name}.yaml" for name in kinds), f"./{shared.name}"],
                    "algorithms": [*RUN],
                    "runs": seeds,
                }
            ],
        },
    )
    found = report["comparisons"]
    by_scenario = {one["scenario"]: efficiencies(one["rows"]) for one in found[:-1]}
    shares = shares_of(found[-1]["rows"])
    least_s = {one["scenario"]: one["oracle_s"] for one in found[:-1]}
    bench.say(f"held-out set of release {series(version)}, {len(kinds)} scenarios")
    bench.say()
    bench.markdown(*rows(by_scenario, kinds, least_s, shares))
    bench.say()
    bench.say(made_by(version, seeds))
    bench.say(headline(by_scenario))
    bench.say()
    worst = sorted(by_scenario, key=lambda name: behind(by_scenario[name]), reverse=True)[:WORST]
    for name in worst:
        best = max(by_scenario[name], key=lambda client: by_scenario[name][client])
        bench.say(
            f"{name}: adaptive {by_scenario[name].get('adaptive', 0):.3f}, "
            f"{best} {by_scenario[name][best]:.3f}"
        )
    return {
        "release": series(version),
        "seeds": seeds,
        "efficiency": by_scenario,
        "oracle_s": least_s,
        "shares": shares,
        "failures": report["failures"],
    }


def efficiencies(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns the median efficiency of each client, 0 if a run failed. curl has its better link. Pure."""
    found = {row["algorithm"]: 0.0 if row["failures"] else row["efficiency"] or 0.0 for row in rows}
    found[CURL] = max(found.pop("curl-wifi"), found.pop("curl-lte"))
    return found


def made_by(version: str, seeds: int) -> str:
    """Says what made the table, as `make tables` does."""
    medians = "seed 1" if seeds == 1 else f"medians of seeds 1 to {seeds}"
    return (
        f"*`make bench ARGS=held_out`: linklab {version}, guest kernel {kernel.key()}, {medians}.*"
    )


def headline(by_scenario: Mapping[str, Mapping[str, float]]) -> str:
    """Says the mean and the least efficiency of adaptive, and of the other client with the highest mean. Pure."""
    best = max(
        (one for one in CLIENTS if not one.startswith("adaptive")),
        key=lambda one: mean(by_scenario, one),
    )
    words = [
        f"{one} {mean(by_scenario, one):.3f} ({least(by_scenario, one)})"
        for one in ("adaptive", best)
    ]
    return f"mean efficiency (least): {', best other client: '.join(words)}"


def mean(by_scenario: Mapping[str, Mapping[str, float]], client: str) -> float:
    """Returns a client's mean efficiency. Each counts as 1 at most: what a client takes from others
    earns nothing. Pure."""
    return statistics.mean(min(1.0, one[client]) for one in by_scenario.values())


def least(by_scenario: Mapping[str, Mapping[str, float]], client: str) -> str:
    """Returns a client's least efficiency, and the scenario that has it. Pure."""
    name = min(by_scenario, key=lambda one: by_scenario[one][client])
    return f"{by_scenario[name][client]:.3f} in {name}"


def behind(one: Mapping[str, float]) -> float:
    """Returns how much less efficient adaptive is than the best client. Pure."""
    return max(one.values()) - one["adaptive"]


def shares_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns the part of Wi-Fi that each client takes beside the flows of others. curl is on Wi-Fi. Pure."""
    found = {}
    for row in rows:
        parts = [part for who, part in row["shares"].get("wifi", {}).items() if "flow" not in who]
        if parts:
            found[row["algorithm"]] = parts[0]
    if "curl-wifi" in found:
        found[CURL] = found.pop("curl-wifi")
    return found


def rows(
    by_scenario: Mapping[str, Mapping[str, float]],
    kinds: Mapping[str, str],
    least_s: Mapping[str, float],
    shares: Mapping[str, float],
) -> tuple[list[str], list[list[str]]]:
    """Returns the heads and the rows of the table. Pure."""
    names = [kind for kind in KINDS if kind in kinds.values()]
    heads = ["client", *names, "all", "worst", "within 1 %", "failed", "share of Wi-Fi, %"]
    made = []
    for client in CLIENTS:
        own = {name: one[client] for name, one in by_scenario.items()}
        means = [
            statistics.mean(value for name, value in own.items() if kinds[name] == kind)
            for kind in names
        ]
        near = sum(
            value * (1 + MOST_BEHIND) >= max(by_scenario[name].values())
            for name, value in own.items()
        )
        cells = [f"{value:.3f}" for value in (*means, mean(by_scenario, client), min(own.values()))]
        failed = sum(value == 0 for value in own.values())
        share = f"{shares[client] * 100:.0f}" if client in shares else "-"
        made.append([client, *cells, str(near), str(failed), share])
    ideal = [
        statistics.mean(value for name, value in least_s.items() if kinds[name] == kind)
        for kind in names
    ]
    whole = [f"{value:.1f} s" for value in (*ideal, statistics.mean(least_s.values()))]
    made.append(["oracle, its mean time", *whole, "", "", "", "20"])
    return heads, made
