"""Tests client.py against the results of multilink's own tests for the same events."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from linklab.core.paths import REPOSITORY
from linklab.core.records import ClientRecord, Tail
from linklab.metrics import client
from linklab.metrics.client import Client

GOLDEN = REPOSITORY / "client" / "internal" / "metrics" / "testdata" / "golden"
RUN = {"run": "r1", "scenario": "hs-s7", "algorithm": "alg3", "seed": "1"}


@pytest.fixture
def told() -> Client:
    made = Client(("wifi", "lte"))
    for record in Tail(GOLDEN, ClientRecord).read():
        made.record(record)
    return made


Exported = dict[str, tuple[str, str, dict[tuple[str, ...], float]]]


@pytest.fixture
def golden() -> Exported:
    """Type, help and series of every metric that multilink exports."""
    families = text_string_to_metric_families((GOLDEN / "metrics.txt").read_text())
    return {
        family.name: (
            family.type,
            family.documentation,
            {key(one.name, one.labels): one.value for one in family.samples},
        )
        for family in families
    }


def key(name: str, labels: dict[str, str]) -> tuple[str, ...]:
    bound = labels.get("le", "inf").replace("+Inf", "inf")
    rest = sorted(f"{label}={value}" for label, value in labels.items() if label != "le")
    return (name, str(float(bound)), *rest)


def test_the_same_metrics_come_to_the_same_values_from_the_same_events(
    told: Client, golden: Exported
) -> None:
    assert {metric.name.removesuffix("_total") for metric in client.METRICS} == set(golden)
    for metric in client.METRICS:
        kind, words, series = golden[metric.name.removesuffix("_total")]
        assert metric.type == kind
        found = {key(one.name, one.labels): one.value for one in metric.samples(told, RUN)}
        assert found == series, metric.name
        if metric is not client.PROGRESS:  # Of several downloads in multilink's own process.
            assert metric.help == words
        if kind == "histogram":
            bounds = {one[1] for one in series if one[0].endswith("_bucket")}
            assert bounds == {str(bound) for bound in (*metric.buckets, float("inf"))}
