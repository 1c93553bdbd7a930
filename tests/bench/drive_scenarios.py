"""Draws drives over the LTE of two operators, with the statistics of recorded ones. Pure.

In Mahimahi's recordings of two operators the means over a second vary by 0.56 and 0.78 of the mean. They correlate
by 0.82 to 0.92 from second to second. In ten minutes 27 gaps last 0.5 to 1.4 s. The recordings themselves are held
out: no constant was chosen by them.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

KINDS = {
    "slow": "down: 4.7 Mbit/s, up: 1 Mbit/s, rtt: 60 ms, queue: 500 kB, "
    "spread: {down_p10: 2.2 Mbit/s, down_p90: 10.5 Mbit/s, memory: 20 s, step: 100 ms}",
    "even": "down: 8 Mbit/s, up: 3 Mbit/s, rtt: 50 ms, queue: 500 kB, "
    "spread: {down_p10: 3.3 Mbit/s, down_p90: 19 Mbit/s, memory: 12 s, step: 100 ms}",
    "fast": "down: 10 Mbit/s, up: 4 Mbit/s, rtt: 45 ms, queue: 500 kB, "
    "spread: {down_p10: 3 Mbit/s, down_p90: 31 Mbit/s, memory: 9 s, step: 50 ms}",
}
"""Of each kind of drive: a link's keys."""

PAUSES = (
    "[{name: gap, per_minute: 4, median: 700 ms, p90: 1.1 s, longest: 1.4 s}, "
    "{name: dip, per_minute: 15, median: 150 ms, p90: 400 ms, left: 10 %}]"
)

DRIVES = {
    f"drive-{first}-{second}": (first, second)
    for first, second in combinations_with_replacement(KINDS, 2)
}
"""The pairs of kinds, by the scenario's name. Seeds make them differ."""


def drive(name: str) -> str:
    """Returns the text of a scenario."""
    links = (
        f"  {operator}: {{kind: lte, {KINDS[kind]}, pauses: {PAUSES}}}\n"
        for operator, kind in zip("ab", DRIVES[name], strict=True)
    )
    return f"name: {name}\ntitle: A drive\npayload: {{size: 40 MB}}\nlinks:\n{''.join(links)}"
