"""Grafana's alert rules: those of Prometheus, as Grafana hears of them.

Prometheus evaluates each second, Grafana every ten at most: a rule here asks whether Prometheus'
fired since. Its words stand in `prometheus/alerts.yml` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from boards.query import DATASOURCE

INTERVAL_S = 10
"""Grafana evaluates no rule more often."""

PANELS = {
    "LinkDown": "Carrier",
    "EmulatorLate": "Emulator late by",
    "EmulatorSaturated": "Core busy",
    "RunFailed": "Progress",
}
"""Where in *Live lab* a rule is seen, by its panel's title."""


def alerting(rules: Mapping[str, Any], live_lab: Mapping[str, Any]) -> dict[str, Any]:
    """What Grafana is provisioned with, of Prometheus' rules and the dashboard *Live lab*."""
    panels = {one["title"]: one["id"] for one in live_lab["panels"]}
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": group["name"],
                "folder": "linklab",
                "interval": f"{INTERVAL_S}s",
                "rules": [
                    _rule(rule, live_lab["uid"], panels[PANELS[rule["alert"]]])
                    for rule in group["rules"]
                ],
            }
            for group in rules["groups"]
        ],
    }


def _rule(rule: Mapping[str, Any], dashboard: str, panel: int) -> dict[str, Any]:
    """A rule that is seen at a panel: the panel is marked by the fields, and messages lead there by
    the annotations of Grafana's own."""
    name = rule["alert"]
    fired = f'ALERTS{{alertname="{name}", alertstate="firing"}}'
    labels = re.findall(r"by \(([^)]*)\)", rule["expr"])[0]
    asked = {
        "refId": "A",
        "datasourceUid": DATASOURCE.uid,
        "relativeTimeRange": {"from": 60, "to": 0},
        "model": {
            "refId": "A",
            "expr": f"max by ({labels}) (max_over_time({fired}[{INTERVAL_S}s]))",
            "instant": True,
        },
    }
    is_so = {
        "refId": "B",
        "datasourceUid": "__expr__",
        "relativeTimeRange": {"from": 60, "to": 0},
        "model": {
            "refId": "B",
            "type": "threshold",
            "expression": "A",
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }
    return {
        "uid": f"linklab-{name.lower()}",
        "title": name,
        "condition": "B",
        "data": [asked, is_so],
        "for": "0s",
        "noDataState": "OK",
        "execErrState": "Error",
        "labels": dict(rule["labels"]),
        "annotations": {
            **rule["annotations"],
            "__dashboardUid__": dashboard,
            "__panelId__": str(panel),
        },
        "dashboardUid": dashboard,
        "panelId": panel,
    }
