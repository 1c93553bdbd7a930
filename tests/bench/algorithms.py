"""Section `algorithms`: runs every algorithm and peer in every scenario, and in random ones.

All clients run with the first seed. Only clients whose other seeds may change the result run with
those. A client far behind with one seed is not ahead in the median of five. All seeds of all
clients take a night (`--every-seed`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linklab import scenario as scenarios
from linklab.models.wifi import WifiSettings
from linklab.runs import clients
from linklab.scenario import Scenario
from rich.table import Table

from bench.common import Bench, Result, percent, table, target
from bench.drive_scenarios import DRIVES, drive
from bench.random_scenarios import draw

OURS = "adaptive"
THRIFTY = "adaptive-energy"
RIVALS = {"emptcp": ("emptcp-http", "emptcp-kernel"), "greenbag": ("gb-e",)}
"""The other energy-saving algorithms by publication. In its scenarios they must not cost less than
ours."""
SEEDS = 5
RANDOM_SEED, RANDOM_COUNT = 1, 40
RANDOM = "random"
"""The word for the random scenarios, such as `random-1-07`."""
ALL_DRIVES = "drives"
"""The word for all `DRIVES`."""
NOT_FOR_TIME = ("live",)
FILMS = (
    "greenbag-mobile+greenbag-120s",
    "greenbag-stationary-1+greenbag-117s",
    "greenbag-stationary-2+greenbag-117s",
    "greenbag-energy+greenbag-120s",
    *(f"greenbag-drops-{number}+greenbag-110s" for number in range(5)),
)
"""GreenBag's scenarios with their original workload, a person who watches the stream."""
LONG_S = 5.0
LEAST_EFFICIENCY = 0.98
"""The least efficiency without random loss, where the oracle needs `LONG_S` or more."""
LEAST_EFFICIENCY_LOSS = 0.92
MOST_BEHIND = 0.01
MOST_SLOWER = 0.1
"""The most extra time that the energy objective may take, as a ratio."""
WORST = 5
CLOSE = 0.1
"""A client that takes at most this ratio longer than ours with one seed may be ahead in the median
of more."""


@dataclass(frozen=True)
class Standing:
    """Holds our results in one scenario: efficiencies by client, medians over the seeds."""

    scenario: str
    oracle_s: float
    loses: bool
    efficiency: dict[str, float]
    is_film: bool = False
    joules_per_byte: dict[str, float] = field(default_factory=dict)
    download_s: dict[str, float] = field(default_factory=dict)

    @property
    def ours(self) -> float:
        """Our efficiency, 0 if our run failed."""
        return self.efficiency.get(OURS, 0.0)

    @property
    def best(self) -> str:
        """The fastest other client."""
        others = {name: one for name, one in self.efficiency.items() if name != OURS}
        return max(others, key=lambda name: others[name], default=OURS)

    @property
    def rival(self) -> str | None:
        """The other energy-saving client with the least energy, of those from this scenario's
        publication."""
        own = [
            name
            for publication, names in RIVALS.items()
            if self.scenario.startswith(f"{publication}-")
            for name in names
            if name in self.joules_per_byte
        ]
        return min(own, key=lambda name: self.joules_per_byte[name], default=None)

    @property
    def extra_energy(self) -> float | None:
        """The extra energy per byte of the energy objective over the rival, as a ratio. None if one
        of them is missing."""
        if self.rival is None or THRIFTY not in self.joules_per_byte:
            return None
        return self.joules_per_byte[THRIFTY] / self.joules_per_byte[self.rival] - 1

    @property
    def behind(self) -> float:
        """The extra time that we take over the best other client, as a ratio. Negative if we are
        faster."""
        return self.efficiency[self.best] / self.ours - 1 if self.ours else math.inf


def algorithms(bench: Bench) -> Result:
    """Every algorithm and peer in every scenario and 40 random ones, medians over the seeds."""
    names = bench.scenarios or (
        [*_built_in(), *FILMS, RANDOM] if not bench.quick else ["static-80-50"]
    )
    seeds = bench.runs or (1 if bench.quick else SEEDS)
    chosen = list(_chosen(bench, names))
    clients = {one.name: _clients(one, bench.clients) for one, _ in chosen}
    near = clients
    if seeds > 1 and not bench.every_seed:
        first = _campaign(bench, chosen, clients, clients, 1)
        near = {
            one.scenario: contenders(one, clients[one.scenario])
            for one in _standings(chosen, first)
        }
    report = _campaign(bench, chosen, clients, near, seeds)
    standings = _standings(chosen, report)
    _show(bench, standings)
    if failures := report["failures"]:
        bench.say(f"[red]{len(failures)} runs failed[/red]: " + "; ".join(sorted(failures)[:9]))
    bench.say(f"page: {bench.work / 'algorithms.html'}")
    return {
        "seeds": seeds,
        "failures": failures,
        "scenarios": {
            one.scenario: {
                "oracle_s": one.oracle_s,
                "loses": one.loses,
                "efficiency": one.efficiency,
                "best_other": one.best,
                "behind": one.behind,
                "joules_per_byte": one.joules_per_byte,
                "download_s": one.download_s,
                "one_seed": sorted(set(clients[one.scenario]) - set(near[one.scenario])),
            }
            for one in standings
        },
    }


def _built_in() -> list[str]:
    return [one.name for one in scenarios.list_all() if one.name not in NOT_FOR_TIME]


def _chosen(bench: Bench, names: Iterable[str]) -> Iterable[tuple[Scenario, str]]:
    """Yields scenarios by name, with the campaign's words for them. Random ones and drives are
    files written here."""
    for name in names:
        if name == RANDOM:
            for number in range(RANDOM_COUNT):
                yield _written(bench, *draw(RANDOM_SEED, number))
        elif name == ALL_DRIVES:
            for one in DRIVES:
                yield _written(bench, one, drive(one))
        elif name in DRIVES:
            yield _written(bench, name, drive(name))
        elif name.startswith(f"{RANDOM}-"):
            yield _written(bench, *draw(*map(int, name.split("-")[1:])))
        else:
            yield scenarios.find(name), name


def _written(bench: Bench, name: str, text: str) -> tuple[Scenario, str]:
    path = bench.work / f"{name}.yaml"
    path.write_text(text)
    return scenarios.load(path), f"./{path.name}"


def _clients(scenario: Scenario, asked: Sequence[str] | None) -> list[str]:
    """Returns all clients that can do the scenario's workload, except the algorithm for one link,
    which curl stands for, and peers that are not compiled here."""
    return [
        name
        for name in clients.names(scenario.links)
        if scenario.workload.name in clients.client_of(name).commands
        and clients.misfit(name, scenario, has_energy=scenario.energy is not None) is None
        and name not in {f"single-{link}" for link in scenario.links}
        and (not asked or name in asked)
        and clients.is_compiled_here(name)
    ]


def _campaign(
    bench: Bench,
    chosen: Sequence[tuple[Scenario, str]],
    clients: Mapping[str, Sequence[str]],
    near: Mapping[str, Collection[str]],
    seeds: int,
) -> Result:
    """Runs all clients of each scenario, close ones with all seeds, except runs that exist. Returns
    the JSON of `linklab campaign --json`."""
    planned = [
        matrix
        for one, name in chosen
        for matrix in matrices(name, clients[one.name], near[one.name], seeds)
    ]
    return bench.campaign("algorithms", {"matrices": planned})


def matrices(
    scenario: str, clients: Sequence[str], near: Collection[str], seeds: int
) -> list[dict[str, Any]]:
    """Returns the matrices of a campaign. Close clients have all seeds, others one. Pure."""
    parts = (
        ([one for one in clients if one in near], seeds),
        ([one for one in clients if one not in near], 1),
    )
    return [
        {"scenarios": [scenario], "algorithms": those, "runs": runs}
        for those, runs in parts
        if those
    ]


def contenders(first: Standing, clients: Iterable[str]) -> list[str]:
    """Returns the clients whose further seeds may change the result, from one run each: ours, those
    of the fastest other, those that may be too far ahead of us, energy-saving ones, and failed
    ones. Pure.

    No client is far ahead of one that is near ideal. For a film, being faster does not count.
    """
    is_open = not first.is_film and first.ours * (1 + MOST_BEHIND) < 1
    least = first.ours / (1 + CLOSE) if is_open else math.inf
    savers = {THRIFTY, *(name for names in RIVALS.values() for name in names)}
    always = {OURS, first.best, *(savers if first.joules_per_byte else ())}
    known = first.efficiency.keys() | first.joules_per_byte.keys()
    return [
        one
        for one in clients
        if one in always or one not in known or first.efficiency.get(one, 0.0) >= least
    ]


def _standings(chosen: Sequence[tuple[Scenario, str]], report: Result) -> list[Standing]:
    return [
        standing(one, compared)
        for (one, _), compared in zip(chosen, report["comparisons"], strict=True)
    ]


def loses_at_random(scenario: Scenario) -> bool:
    """Tells whether packets are lost for other reasons than a full queue, including the edge of
    Wi-Fi."""
    links = scenario.links.values()
    radios = (one.model(WifiSettings) for one in links)
    return (
        any(one.loss_ratio > 0 for one in links)
        or any(one.loss_ratio for one in scenario.events)
        or any(one is not None and (one.loss_ratio or one.edge_loss_ratio) for one in radios)
    )


def standing(scenario: Scenario, compared: dict[str, Any]) -> Standing:
    """Reads a scenario's results from `linklab campaign --json`. Pure."""
    rows = {row["algorithm"]: row for row in compared["rows"]}

    def known(figure: Callable[[dict[str, Any]], float | None]) -> dict[str, float]:
        found = {name: figure(row) for name, row in rows.items()}
        return {name: value for name, value in found.items() if value is not None}

    return Standing(
        scenario.name,
        compared["oracle_s"] or math.inf,
        loses_at_random(scenario),
        known(lambda row: row["efficiency"]),
        scenario.workload.name == "player",
        known(lambda row: (row["energy"] or {}).get("joules_per_byte")),
        known(lambda row: row["download_s"]),
    )


def wins(standings: Iterable[Standing]) -> dict[str, int]:
    """Counts for each client the scenarios in which it is within `MOST_BEHIND` of the fastest.
    Pure."""
    counts: dict[str, int] = defaultdict(int)
    for one in standings:
        first = max(one.efficiency.values(), default=0.0)
        for name, efficiency in one.efficiency.items():
            counts[name] += efficiency * (1 + MOST_BEHIND) >= first
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def shown(standings: Iterable[Standing]) -> Table:
    """Returns the table of our results beside the best other client."""
    made = table("scenario", "ideal s", OURS, "best other", "behind, %", gap=1)
    for one in standings:
        takes_part = OURS in one.efficiency
        made.add_row(
            one.scenario,
            f"{one.oracle_s:.2f}",
            _efficiency(one.ours) if takes_part else "-",
            f"{_efficiency(one.efficiency[one.best])} {one.best}" if one.best != OURS else "-",
            percent(one.behind, 1) if takes_part else "-",
        )
    return made


def _efficiency(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def shown_energy(standings: Iterable[Standing]) -> Table:
    """Returns the table of the energy objective's cost beside that of energy-saving clients in
    their scenarios."""
    made = table("scenario", f"{THRIFTY}\nµJ/B", "s", "others'\nleast", "more, %", gap=1)
    for one in standings:
        if one.rival is None or one.extra_energy is None:
            continue
        made.add_row(
            one.scenario.replace("+", "\n+"),
            f"{one.joules_per_byte[THRIFTY] * 1e6:.3f}",
            f"{one.download_s[THRIFTY]:.1f}",
            f"{one.joules_per_byte[one.rival] * 1e6:.3f} {one.rival}",
            percent(one.extra_energy, 1),
        )
    return made


def _show_energy(bench: Bench, standings: Sequence[Standing]) -> None:
    rivalled = [one for one in standings if one.extra_energy is not None]
    if not rivalled:
        return
    bench.say()
    bench.console.print(shown_energy(rivalled))
    least = sum(more <= 0 for one in rivalled if (more := one.extra_energy) is not None)
    bench.say(
        f"{least} of {len(rivalled)} scenarios: "
        + target("no more energy than gb-e and eMPTCP in their own", least == len(rivalled))
    )
    timed = [one for one in rivalled if not one.is_film and OURS in one.download_s]
    most = 2 * (1 + MOST_SLOWER)
    soon = sum(one.download_s[THRIFTY] <= most * one.download_s[OURS] for one in timed)
    bench.say(
        f"{soon} of {len(timed)} scenarios: "
        + target("at most 10 % slower than twice the time of adaptive", soon == len(timed))
    )


def _show(bench: Bench, everything: Sequence[Standing]) -> None:
    standings = [one for one in everything if not one.is_film]
    _show_time(bench, standings)
    _show_energy(bench, everything)


def _show_time(bench: Bench, standings: Sequence[Standing]) -> None:
    if not standings:
        return
    bench.say("efficiency: ideal / time; ideal knows all events in advance; of all, see the page")
    bench.console.print(shown(standings))
    fastest = ", ".join(f"{name} {count}" for name, count in wins(standings).items() if count)
    bench.say(
        f"scenarios in which each is within 1 % of the fastest, of {len(standings)}: {fastest}"
    )
    _judge(bench, [one for one in standings if OURS in one.efficiency])


def _judge(bench: Bench, standings: Sequence[Standing]) -> None:
    """Prints for each target how many scenarios meet it, and the worst ones."""
    if not standings:
        return
    long = [one for one in standings if not one.loses and one.oracle_s >= LONG_S]
    lossy = [one for one in standings if one.loses]
    for what, those, least in (
        (f"≥ {LEAST_EFFICIENCY} without random loss", long, LEAST_EFFICIENCY),
        (f"≥ {LEAST_EFFICIENCY_LOSS} with it", lossy, LEAST_EFFICIENCY_LOSS),
    ):
        if not those:
            continue
        met = sum(one.ours >= least for one in those)
        bench.say(
            f"{met} of {len(those)} scenarios: " + target(f"efficiency {what}", met == len(those))
        )
    near = sum(one.behind <= MOST_BEHIND for one in standings)
    bench.say(
        f"{near} of {len(standings)} scenarios: "
        + target("never more than 1 % slower than any other", near == len(standings))
    )
    worst = sorted(standings, key=lambda one: -one.behind)[:WORST]
    bench.say(
        "furthest behind: "
        + "; ".join(f"{one.scenario} {percent(one.behind, 1)} % ({one.best})" for one in worst)
    )
