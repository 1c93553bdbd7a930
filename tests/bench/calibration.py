"""Section `calibration`: compares each link of the thesis alone with its published rate, and finds
the `down` and `between_runs` that fit."""

from __future__ import annotations

import functools
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

from linklab import scenario
from linklab.links import oracle
from linklab.report import publication

from bench import fitting as links
from bench.common import CORES, Bench, Result, percent, table, target
from bench.fitting import SEEDS, Alone, Found, Target

LAB_SEEDS = 3
"""Labs differ from the model by about 1 %, so a few runs show by how much they are slower."""

TIME_AIM = 0.01
SPREAD_AIM = 0.15


@dataclass(frozen=True)
class Link:
    """Holds a link, the ratio of a lab's time to its model's, and its target."""

    scenario: str
    name: str
    target: Target
    lab_ratio: float


def calibration(bench: Bench) -> Result:
    """The thesis' links alone against their published rows, and what they should be set to."""
    seeds = SEEDS[:20] if bench.quick else SEEDS
    wanted = _with_labs(bench, 1 if bench.quick else LAB_SEEDS)
    shown = table(
        "scenario",
        "link",
        "publ. s",
        "error %",
        "spread %",
        "publ. %",
        "lab",
        "down",
        "between %",
        left=2,
        gap=1,
    )
    rows = []
    with ProcessPoolExecutor(CORES) as pool:
        measured = pool.map(functools.partial(_measured, seeds=tuple(seeds)), wanted)
        for link, (now, found, then) in zip(wanted, measured, strict=True):
            error = now.download_s * link.lab_ratio / link.target.download_s - 1
            rows.append(
                {
                    **asdict(link),
                    "now": asdict(now),
                    "error": error,
                    "found": asdict(found),
                    "then": asdict(then),
                }
            )
            bench.note(f"{link.scenario} {link.name}: {found}, then {then}")
            shown.add_row(
                link.scenario,
                link.name,
                f"{link.target.download_s:.2f}",
                percent(error),
                f"{now.spread * 100:.1f}",
                f"{link.target.spread * 100:.1f}",
                f"{link.lab_ratio:.4f}",
                f"{found.down_bps / 1e6:.4g} Mbit/s",
                f"{found.between_runs * 100:.1f}",
            )
    bench.say(
        f"seeds {seeds[0]} to {seeds[-1]} at full load; error of the median, times what a lab is slower;"
        "\nspread of the runs' median seconds; on the right the keys that come nearest"
    )
    bench.console.print(shown)
    bench.say(target("median 1 %", all(abs(row["error"]) <= TIME_AIM for row in rows)))
    near = [abs(row["now"]["spread"] - row["target"]["spread"]) for row in rows]
    bench.say(
        target(
            "spread 15 % of it or half a point",
            all(
                off <= max(SPREAD_AIM * row["target"]["spread"], 0.005)
                for off, row in zip(near, rows, strict=True)
            ),
        )
    )
    return {"seeds": [seeds[0], seeds[-1]], "rows": rows}


def _measured(link: Link, seeds: tuple[int, ...]) -> tuple[Alone, Found, Alone]:
    """Returns the link's results now, the fitting settings, and the results with these."""
    one = scenario.find(link.scenario)
    now = links.alone(one, link.name, seeds)
    found = links.calibrated(one, link.name, link.target, lab_ratio=link.lab_ratio, seeds=seeds)
    return now, found, links.alone(links.given(one, link.name, found), link.name, seeds)


def _with_labs(bench: Bench, runs: int) -> list[Link]:
    """Returns every link of the thesis with its target, after some downloads over it in a lab."""
    stated = publication.find("thesis").statements
    wanted = [
        (one, link, goal)
        for one in map(scenario.find, links.SCENARIOS)
        for link, goal in links.targets(one, stated).items()
    ]
    calls = [
        ("run", one.name, "-a", f"single-{link}", "--seed", seed)
        for one, link, _ in wanted
        for seed in SEEDS[:runs]
    ]
    downloads = iter([done.json["figures"]["download_s"] for done in bench.all("labs", calls)])
    return [
        Link(
            one.name,
            link,
            goal,
            statistics.median(
                next(downloads) / oracle.single_link_s(one, link, seed) for seed in SEEDS[:runs]
            ),
        )
        for one, link, goal in wanted
    ]
