"""Makes what is in `grafana` from what is said in `boards`: dashboards, and alert rules.

usage: generate.py    (after a change, in linklab's Python environment)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from boards.alerts import alerting
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


ALERTING = "provisioning/alerting/linklab.yaml"

HEAD = "# Made by dashboards/generate.py of dashboards/prometheus/alerts.yml: do not edit.\n"

RULES = Path(__file__).parent / "prometheus" / "alerts.yml"

_HIDDEN = ("placement", "inControlsMenu")
"""Where controls are shown: the SDK says this of each, and Grafana from 12.3 hides them then
(grafana#115084, grafana-foundation-sdk#1272). Without it they stand above the panels."""


def generated() -> dict[str, str]:
    """The content of each file, by its name in `grafana`."""
    encoder = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False)
    made = {name: _shown(json.loads(encoder.encode(make()))) for name, make in DASHBOARDS.items()}
    rules = yaml.safe_load(RULES.read_text())
    return {
        ALERTING: HEAD
        + yaml.safe_dump(alerting(rules, made["live-lab.json"]), sort_keys=False, width=100),
        **{
            name: json.dumps(board, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
            for name, board in made.items()
        },
    }


def _shown(part: Any) -> Any:
    """A part of a dashboard, with its controls where people see them."""
    if isinstance(part, dict):
        return {key: _shown(one) for key, one in part.items() if (key, one) != _HIDDEN}
    return [_shown(one) for one in part] if isinstance(part, list) else part


def main() -> None:
    """Writes the files."""
    for name, content in generated().items():
        (DIRECTORY / name).write_text(content)


if __name__ == "__main__":
    main()
