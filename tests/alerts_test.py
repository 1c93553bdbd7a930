"""Tests alerts on their way to a person: the provisioned files, and delivery by a running Grafana.

For delivery, GRAFANA_URL names a Grafana with this repository's provisioning. GRAFANA_SCRAPES is an
address that only its Prometheus scrapes. LINKLAB_ALERT_TO is an address of this machine with which
that Grafana was started.
"""

import json
import os
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, until
from linklab.metrics import links, results
from linklab.metrics.metric import RUN_LABELS
from prometheus import GRAFANA

ALERTING = GRAFANA / "provisioning" / "alerting"
NOTIFY: dict[str, Any] = yaml.safe_load((ALERTING / "notify.yaml").read_text())

# --- Without a Grafana.


def routed(labels: dict[str, str]) -> tuple[str, bool]:
    """Returns the contact point for an alert with these labels, and whether it is muted."""
    (policy,) = NOTIFY["policies"]
    for route in policy["routes"]:
        if all(labels[name] == value for name, _, value in route["object_matchers"]):
            return route["receiver"], bool(route["mute_time_intervals"])
    return policy["receiver"], False


def test_warnings_are_told_and_what_a_scenario_does_on_purpose_is_not() -> None:
    rules = yaml.safe_load((ALERTING / "linklab.yaml").read_text())["groups"][0]["rules"]
    told = {rule["title"]: routed(rule["labels"]) for rule in rules}
    assert told == {
        "LinkDown": ("linklab", True),
        "EmulatorLate": ("linklab", False),
        "EmulatorSaturated": ("linklab", False),
        "RunFailed": ("linklab", False),
    }
    (point,) = NOTIFY["contactPoints"]
    assert point["name"] == "linklab"
    muted = {one["name"] for one in NOTIFY["muteTimes"]}
    assert muted.issuperset(NOTIFY["policies"][0]["routes"][0]["mute_time_intervals"])


def test_compose_gives_grafana_every_variable_of_the_contact_point() -> None:
    services = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]
    (receiver,) = NOTIFY["contactPoints"][0]["receivers"]
    named = {receiver["type"], *receiver["settings"].values()}
    for name in named:
        default = services["grafana"]["environment"][name.removeprefix("$")]
        assert default.startswith(f"${{{name.removeprefix('$')}:-"), name


# --- With a running Grafana.


@contextmanager
def serving(address: str, handler: type[BaseHTTPRequestHandler]) -> Iterator[None]:
    """Runs a server at `host:port`."""
    host, _, port = address.partition(":")
    server = ThreadingHTTPServer((host, int(port)), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    server.shutdown()
    server.server_close()


def a_lab_whose(samples: dict[str, float]) -> type[BaseHTTPRequestHandler]:
    """Returns a server of a lab's metrics for one new run. Each run is new, because an alert is
    sent only once."""
    said = {**{name: f"{name}-of-alerts-test" for name in RUN_LABELS}, "run": f"{time.time_ns()}"}
    labels = ", ".join(f'{name}="{value}"' for name, value in said.items())

    class Lab(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = "".join(
                f"# TYPE {name} gauge\n{name}{{{labels}}} {value}\n"
                for name, value in samples.items()
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    return Lab


@pytest.mark.one_at_a_time
@pytest.mark.asked_for("GRAFANA_URL")
def test_a_failed_run_is_told_and_a_link_that_is_down_stays_on_the_dashboard() -> None:
    names = ("GRAFANA_URL", "GRAFANA_SCRAPES", "LINKLAB_ALERT_TO")
    if missing := [name for name in names if not os.environ.get(name)]:
        pytest.skip(f"{', '.join(missing)} not set: no Grafana at hand that tells this test")
    grafana, scraped, told_at = (os.environ[name] for name in names)
    told: list[dict[str, Any]] = []

    class Person(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.extend(json.loads(body)["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    def firing() -> set[str]:
        url = f"{grafana.rstrip('/')}/api/prometheus/grafana/api/v1/alerts"
        with urllib.request.urlopen(url, timeout=30) as answer:
            alerts = json.load(answer)["data"]["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "Alerting"}

    lab = a_lab_whose({results.FAILED.name: 1, links.UP.name: 0})
    with serving(urllib.parse.urlsplit(told_at).netloc, Person), serving(scraped, lab):
        until(lambda: told and firing() >= {"LinkDown", "RunFailed"}, lambda: (told, firing()))
    (alert,) = told
    assert (alert["labels"]["alertname"], alert["status"]) == ("RunFailed", "firing")
    assert alert["annotations"]["summary"].startswith("A run of algorithm-of-alerts-test in")
    assert "/d/linklab-live" in alert["panelURL"]
