"""Implements `linklab publish`: puts finished runs into Prometheus."""

from __future__ import annotations

import argparse
import json
import webbrowser
from pathlib import Path

from linklab.commands import report
from linklab.commands.options import add, count
from linklab.core import extras
from linklab.core.error_report import report_error
from linklab.core.limits import MAX_RETENTION_DAYS
from linklab.publish import prometheus

EPILOG = """\
Prometheus shows new blocks of its data within a minute. The printed links
lead to the Grafana of --grafana.

examples:
  linklab publish runs/*-compare/* \\
    --prometheus-data /var/lib/prometheus/metrics2
  linklab publish runs/*-compare/* --output runs.om"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run directory")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--prometheus-data", type=Path, metavar="DIR", help="Prometheus' data directory"
    )
    target.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics FILE DIR`",
    )
    parser.add_argument(
        "--retention",
        type=count(MAX_RETENTION_DAYS),
        default=15,
        metavar="DAYS",
        help="days that Prometheus keeps data (default 15)",
    )
    parser.add_argument(
        "--grafana",
        metavar="URL",
        default=prometheus.GRAFANA,
        help=f"Grafana's address, for the printed links (default {prometheus.GRAFANA})",
    )
    parser.add_argument(
        "--reports",
        type=Path,
        metavar="DIR",
        help="write a report of each run there, RUN.html. *Compare algorithms* links to the web "
        "server that serves them",
    )
    parser.add_argument(
        "--open", action="store_true", help="open the last of the links in a browser"
    )
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Publishes the runs and prints where each one is."""
    if options.reports is not None:
        extras.require_page("--reports")
    done = prometheus.publish(
        options.runs,
        data=options.prometheus_data,
        output=options.output,
        retention_s=options.retention * 86400,
    )
    if options.reports is not None:
        options.reports.mkdir(parents=True, exist_ok=True)
        for one in done:
            report.of_directories([one.run_dir], options.reports / f"{one.slot.run}.html")
    together = prometheus.overviews(done, options.grafana)
    if options.json:
        print(json.dumps([prometheus.to_json(one, options.grafana) for one in done], indent=2))
    else:
        for one in done:
            print(prometheus.in_words(one, options.grafana))
        for what, url in together.items():
            print(f"{what}: {url}")
    if options.open:
        last = [prometheus.live_url(done[-1], options.grafana), *together.values()][-1]
        if not webbrowser.open(last):
            report_error("no browser can be opened here; the links are above")
    return 0
