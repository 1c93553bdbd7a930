"""Makes the Grafana dashboards in `grafana` from what is said in `boards`.

usage: generate.py    (after a change, in linklab's Python environment)
"""

from __future__ import annotations

from pathlib import Path

from boards.compare_algorithms import compare_algorithms
from boards.live_lab import live_lab
from boards.regression_history import regression_history
from grafana_foundation_sdk.cog.encoder import JSONEncoder

DIRECTORY = Path(__file__).parent / "grafana"

DASHBOARDS = {
    "live-lab.json": live_lab,
    "compare-algorithms.json": compare_algorithms,
    "regression-history.json": regression_history,
}


def generated() -> dict[str, str]:
    """Each dashboard's file name and content."""
    encoder = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False)
    return {name: encoder.encode(make()) + "\n" for name, make in DASHBOARDS.items()}


def main() -> None:
    """Writes the files."""
    for name, content in generated().items():
        (DIRECTORY / name).write_text(content)


if __name__ == "__main__":
    main()
