"""Sections `thesis` and `peers`: the algorithms beside published figures and other programs."""

from __future__ import annotations

from typing import Any

from bench_common import Bench, Result, percent, table

BOUNDS = {"naive": 0.05, "alg1": 0.15, "alg2": 0.15, "alg3": 0.10}
"""How near the outcomes are to come to table 5.12; the single links are calibrated."""

CALIBRATED = 0.01

BEST_SINGLE = ("curl-wifi", "curl-lte")
COLUMNS = ("mptcp", "aria2-2", "aria2-8", "alg1", "alg2", "alg3")
PEER_SCENARIOS = ("static-80-50", "static-7-66", "wifi-outage", "wifi-collapse", "wifi-gone")


def thesis(bench: Bench) -> Result:
    """Every approach in the thesis' static scenarios beside its table 5.12."""
    names = ("hs-s7",) if bench.quick else ("hs-s7", "hs-s6", "ls")
    shown = table(
        "scenario", "algorithm", "thesis s", "here s", "error %", "target", "Δ thesis", "Δ here",
        left=2,
    )  # fmt: skip
    result: Result = {}
    for number, name in enumerate(names, 1):
        comparison = _compare(bench, name, (), f"{number} of {len(names)}")
        result[name] = comparison["rows"]
        for row in comparison["rows"]:
            shown.add_row(
                name, row["algorithm"], _seconds(row["published_s"]), _seconds(row["download_s"]),
                "-" if row["error_ratio"] is None else percent(row["error_ratio"], 1),
                _verdict(row), _seconds(row["published_link_delta_s"]),
                _seconds(row["link_delta_s"]), end_section=row is comparison["rows"][-1],
            )  # fmt: skip
    bench.say("250 MB, download time and link Δ in s; single links are calibrated")
    bench.console.print(shown)
    return result


def _verdict(row: dict[str, Any]) -> str:
    if row["error_ratio"] is None:
        return "-"
    bound = BOUNDS.get(row["algorithm"], CALIBRATED)
    met = abs(row["error_ratio"]) <= bound
    return f"[{'green' if met else 'red'}]{bound * 100:.0f} %: {'met' if met else 'missed'}[/]"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def peers(bench: Bench) -> Result:
    """Other people's programs and the algorithms on the same links, all measured now."""
    names = PEER_SCENARIOS[:1] if bench.quick else PEER_SCENARIOS
    shown = table("scenario", "ideal", "curl on\nbest link", *COLUMNS, gap=1)
    result: Result = {}
    for number, name in enumerate(names, 1):
        comparison = _compare(bench, name, (*BEST_SINGLE, *COLUMNS), f"{number} of {len(names)}")
        rows = {row["algorithm"]: row for row in comparison["rows"]}
        single = min(
            (rows[one] for one in BEST_SINGLE if rows[one]["download_s"] is not None),
            key=lambda row: float(row["download_s"]), default=rows[BEST_SINGLE[0]],
        )  # fmt: skip
        result[name] = {"oracle_s": comparison["oracle_s"], "rows": comparison["rows"]}
        cells = [_cell(row) for row in (single, *(rows[one] for one in COLUMNS))]
        shown.add_row(name, _seconds(comparison["oracle_s"]), *cells)
        for row in rows.values():
            for failure in row["failures"]:
                bench.say(f"[red]{name}, {row['algorithm']} failed: {failure}[/red]")
    bench.say("100 MB, seconds (efficiency: ideal / time); ideal knows all events in advance")
    bench.console.print(shown)
    return result


def _cell(row: dict[str, Any]) -> str:
    if row["download_s"] is None:
        return "[red]failed[/red]"
    return f"{row['download_s']:.2f}\n({row['efficiency']:.2f})"


def _compare(bench: Bench, scenario: str, algorithms: tuple[str, ...], where: str) -> Any:
    """`linklab compare` of one scenario; without `algorithms` the thesis' six."""
    chosen = ("-a", ",".join(algorithms)) if algorithms else ()
    (done,) = bench.all(f"{scenario}, {where}", [("compare", scenario, *chosen)])
    return done.json["comparisons"][0]
