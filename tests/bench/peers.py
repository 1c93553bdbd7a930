"""Section `peers`: runs the algorithms beside foreign programs."""

from __future__ import annotations

from typing import Any

from bench.common import Bench, Result, table

BEST_SINGLE = ("curl-wifi", "curl-lte")
COLUMNS = ("mptcp", "aria2-2", "aria2-8", "alg1", "alg2", "alg3")
PEER_SCENARIOS = ("static-80-50", "static-7-66", "wifi-outage", "wifi-collapse", "wifi-gone")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def peers(bench: Bench) -> Result:
    """Foreign programs and the algorithms on the same links, all measured now."""
    names = PEER_SCENARIOS[:1] if bench.quick else PEER_SCENARIOS
    shown = table("scenario", "ideal", "curl on\nbest link", *COLUMNS, gap=1)
    result: Result = {}
    for number, name in enumerate(names, 1):
        comparison = _compare(bench, name, (*BEST_SINGLE, *COLUMNS), f"{number} of {len(names)}")
        rows = {row["algorithm"]: row for row in comparison["rows"]}
        single = min(
            (rows[one] for one in BEST_SINGLE if rows[one]["download_s"] is not None),
            key=lambda row: float(row["download_s"]),
            default=rows[BEST_SINGLE[0]],
        )
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
    """Runs `linklab compare` of one scenario."""
    words = ("compare", scenario, "-a", ",".join(algorithms))
    (done,) = bench.all(f"{scenario}, {where}", [words])
    return done.json["comparisons"][0]
