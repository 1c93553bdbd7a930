"""Tests run.py, and the values of a run's metrics."""

import math
import shutil
import subprocess
from dataclasses import asdict, replace
from typing import Any

import msgspec
import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from linklab.core.frames import goodput_ratio
from linklab.core.records import ClientRecord, EventRecord, LinkRecord, MachineRecord, QueueRecord
from linklab.core.records_test import sampled
from linklab.metrics import about
from linklab.metrics.about import Setting
from linklab.metrics.run import CATALOGUE, RunLabels, RunMetrics, families
from linklab.runs.beside_baseline import BesideBaseline, Movement
from linklab.runs.run_figures import LinkFigures, RunFigures

LABELS = RunLabels("r", "s", "1 MB", "alg3", "1", "real")
FIGURES = RunFigures(
    download_s=10.0,
    goodput_bps=8e6,
    oracle_s=9.0,
    efficiency=0.9,
    link_delta_s=0.5,
    links={"wifi": LinkFigures(6, 0.6, wasted_bytes=1), "lte": LinkFigures(4, 0.4, wasted_bytes=0)},
    stalled_s=0.2,
)


@pytest.fixture
def run() -> RunMetrics:
    return RunMetrics(LABELS, ("wifi", "lte"), 1_000_000, Setting("guest", "r1", 2, 100.0))


STATE = LinkRecord(
    t_s=0.0,
    late_s=0.0,
    link="wifi",
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=8_000_000,
    delay_s=0.01,
    jitter_s=0.0,
    loss_ratio=0.001,
    carriers=2,
)


QUEUE = sampled(0.5, "lte", 100, queue_bytes=20, dropped_packets=3, lost_packets=4)


def state(t_s: float, **changed: Any) -> LinkRecord:
    return replace(STATE, t_s=t_s, **changed)


def tell(run: RunMetrics, *records: object) -> None:
    for record in records:
        run.record(record.t_s, record)  # type: ignore[attr-defined,arg-type]


def value(run: RunMetrics, name: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in run.samples()
        if one.name == name and labels.items() <= one.labels.items()
    ]
    return float(found)


def test_every_series_carries_the_run(run: RunMetrics) -> None:
    tell(run, state(0.0), ClientRecord(0, "start"))
    run.conclude(FIGURES, 110.0)
    for sample in run.samples():
        assert asdict(LABELS).items() <= sample.labels.items()


def test_counters_are_there_from_the_start_and_client_metrics_only_with_a_client(
    run: RunMetrics,
) -> None:
    assert value(run, "linklab_link_sent_bytes_total", link="lte", direction="up") == 0
    assert value(run, "linklab_events_total", link="wifi", kind="carrier-down") == 0
    assert not [one for one in run.samples() if one.name.startswith("multilink_")]


def test_a_links_state_in_base_units(run: RunMetrics) -> None:
    tell(run, state(0.0))
    assert value(run, "linklab_link_rate_bytes_per_second", direction="down") == 10e6
    assert value(run, "linklab_link_rate_bytes_per_second", direction="up") == 1e6
    assert value(run, "linklab_link_delay_seconds") == 0.01
    assert value(run, "linklab_link_loss_ratio") == 0.001
    assert value(run, "linklab_link_carriers") == 2
    assert value(run, "linklab_link_up") == 1


def test_outages_count_whether_the_client_sees_them_or_not(run: RunMetrics) -> None:
    tell(run, state(0.0), state(1.0, up=False), state(1.25), state(2.0, blackout=True))
    assert value(run, "linklab_link_outage_seconds_total", link="wifi") == 0.25
    assert value(run, "linklab_link_rate_bytes_per_second", direction="down") == 0
    assert value(run, "linklab_link_up") == 1
    assert value(run, "linklab_link_loss_ratio") == 1
    run.advance(4.0)
    run.advance(3.0)
    assert value(run, "linklab_link_outage_seconds_total", link="wifi") == 2.25
    assert value(run, "linklab_link_outage_seconds_total", link="lte") == 0


def test_a_trace_that_is_at_0_is_an_outage_and_a_sleeping_radio_is_none(run: RunMetrics) -> None:
    tell(run, state(0.0, hold_down=True), state(3.0, hold_up=True))
    assert value(run, "linklab_link_outage_seconds_total", link="wifi") == 3.0
    assert value(run, "linklab_link_rate_bytes_per_second", direction="down") == 10e6
    assert value(run, "linklab_link_rate_bytes_per_second", direction="up") == 0
    tell(run, state(4.0, hold_down=True, hold_up=True, rrc="idle"))
    run.advance(9.0)
    assert value(run, "linklab_link_outage_seconds_total", link="wifi") == 3.0
    assert value(run, "linklab_link_rate_bytes_per_second", direction="down") == 10e6


def test_a_handover_is_leaving_an_access_point(run: RunMetrics) -> None:
    tell(run, state(0.0, access_point="ap1"), state(1.0, access_point=""))
    assert value(run, "linklab_link_handovers_total", link="wifi") == 1
    tell(run, state(1.05, access_point="ap2"), state(2.0, access_point="ap1"))
    assert value(run, "linklab_link_handovers_total", link="wifi") == 2


def test_lateness_is_the_worst_of_five_seconds(run: RunMetrics) -> None:
    tell(run, state(0.0, late_s=0.03), state(4.0, late_s=0.001))
    assert value(run, "linklab_lateness_seconds") == 0.03
    tell(run, msgspec.structs.replace(QUEUE, t_s=5.5, late_s=0.002))
    assert value(run, "linklab_lateness_seconds") == 0.002
    run.advance(11.0)
    assert value(run, "linklab_lateness_seconds") == 0


def test_how_busy_the_machine_is(run: RunMetrics) -> None:
    assert value(run, "linklab_busy_ratio") == 0
    tell(run, MachineRecord(3.0, 0.5))
    assert value(run, "linklab_busy_ratio") == 0.5
    assert run.now_s == 3.0


def test_what_makes_figures_not_the_scenarios(run: RunMetrics) -> None:
    def flaws() -> dict[str, float]:
        return {
            one.labels["why"]: one.value
            for one in run.figures()
            if one.name == "linklab_run_flawed"
        }

    tell(run, state(0.0, late_s=0.25), EventRecord(0.5, "wifi", "carrier-down"))
    for t_s in (0.0, 1.0, 2.0):  # A lab that starts takes all of a core.
        tell(run, MachineRecord(t_s, 1.0))
    assert flaws() == {"by hand": 0, "late": 0, "busy": 0}
    tell(run, MachineRecord(3.0, 0.97))
    assert flaws() == {"by hand": 0, "late": 0, "busy": 1}
    tell(run, MachineRecord(4.0, 0.1), state(4.0, late_s=0.26))
    assert flaws() == {"by hand": 0, "late": 1, "busy": 1}
    tell(run, state(60.0), EventRecord(60.5, "wifi", "live", "carrier down"))
    assert flaws() == {"by hand": 1, "late": 1, "busy": 1}


def test_capacity_and_use_are_of_the_same_second(run: RunMetrics) -> None:
    def sampled(t_s: float, sent_bytes: int) -> QueueRecord:
        return msgspec.structs.replace(QUEUE, t_s=t_s, link="wifi", sent_bytes=sent_bytes)

    def now(name: str, **labels: str) -> float:
        return value(run, f"linklab_link_{name}", link="wifi", **labels)

    tell(run, state(0.0), sampled(0.5, 4_000_000), sampled(1.0, 9_000_000))
    assert now("capacity_bytes_per_second", direction="down") == 10e6
    assert now("use_bytes_per_second", direction="down") == 9e6
    tell(run, state(1.25, up=False), sampled(1.5, 11_000_000), sampled(2.0, 11_000_000))
    assert now("rate_bytes_per_second", direction="down") == 0
    assert now("capacity_bytes_per_second", direction="down") == pytest.approx(2.5e6)
    assert now("use_bytes_per_second", direction="down") == 2e6
    assert now("outage_ratio") == 0.75
    tell(run, sampled(2.5, 11_000_000), sampled(3.0, 11_000_000))
    assert now("capacity_bytes_per_second", direction="down") == 0
    assert now("use_bytes_per_second", direction="down") == 0
    assert now("outage_ratio") == 1


def test_what_has_arrived_is_by_the_clients_word(run: RunMetrics) -> None:
    tell(
        run,
        ClientRecord(0, "size", bytes=1_000_000),
        ClientRecord(1, "sample", "lte", received_bytes=300_000),
        msgspec.structs.replace(QUEUE, t_s=1.0, sent_bytes=330_000),
    )
    assert value(run, "linklab_download_progress_ratio") == 0.3
    assert value(run, "linklab_download_goodput_bytes_per_second", link="lte") == 300_000


def test_what_of_another_program_has_arrived_is_by_the_links_counters(run: RunMetrics) -> None:
    tell(run, msgspec.structs.replace(QUEUE, t_s=1.0, sent_bytes=500_000))
    arrived = 500_000 * goodput_ratio()
    assert value(run, "linklab_download_progress_ratio") == arrived / 1e6
    assert value(run, "linklab_download_goodput_bytes_per_second", link="lte") == arrived
    assert value(run, "linklab_download_goodput_bytes_per_second", link="wifi") == 0
    tell(run, msgspec.structs.replace(QUEUE, t_s=1.5, sent_bytes=2_000_000))
    assert value(run, "linklab_download_progress_ratio") == 1


def test_queues_and_events_are_counted(run: RunMetrics) -> None:
    tell(run, QUEUE, EventRecord(0.6, "lte", "rrc"))
    tell(run, EventRecord(0.7, "lte", "rrc"), EventRecord(0.8, "", "next"))
    assert value(run, "linklab_link_sent_bytes_total", link="lte", direction="down") == 100
    assert value(run, "linklab_link_queue_bytes", link="lte", direction="down") == 20
    assert value(run, "linklab_link_dropped_packets_total", link="lte", direction="down") == 3
    assert value(run, "linklab_link_lost_packets_total", link="lte", direction="down") == 4
    assert value(run, "linklab_events_total", link="lte", kind="rrc") == 2
    assert value(run, "linklab_events_total", link="", kind="next") == 1


def test_the_clients_requests(run: RunMetrics) -> None:
    tell(
        run,
        ClientRecord(0, "size", bytes=1000_000),
        ClientRecord(1, "request", "wifi", length=20_000),
        ClientRecord(2, "request", "wifi", length=400_000),
        ClientRecord(3, "sample", "wifi", received_bytes=15_000, rtt_ns=20_000_000),
    )
    assert value(run, "multilink_requests_in_flight", link="wifi") == 2
    assert value(run, "multilink_received_bytes_total", link="wifi") == 15_000
    assert value(run, "multilink_rtt_seconds", link="wifi") == 0.02
    assert value(run, "multilink_request_size_bytes_bucket", link="wifi", le="16384.0") == 0
    assert value(run, "multilink_request_size_bytes_bucket", link="wifi", le="65536.0") == 1
    assert value(run, "multilink_request_size_bytes_bucket", link="wifi", le="+Inf") == 2
    assert value(run, "multilink_request_size_bytes_sum", link="wifi") == 420_000
    tell(
        run,
        ClientRecord(4, "end", "wifi", bytes=20_000),
        ClientRecord(5, "end", "wifi", bytes=60_000, wasted_bytes=40_000),
        ClientRecord(6, "late", "lte", bytes=500),
        ClientRecord(7, "failover", "wifi", bytes=300_000),
    )
    assert value(run, "multilink_requests_in_flight", link="wifi") == 0
    assert value(run, "multilink_received_bytes_total", link="wifi") == 120_000
    assert value(run, "multilink_wasted_bytes_total", link="wifi") == 40_000
    assert value(run, "multilink_wasted_bytes_total", link="lte") == 500
    assert value(run, "multilink_received_bytes_total", link="lte") == 500
    assert value(run, "multilink_failovers_total", link="wifi") == 1
    assert value(run, "multilink_failovers_total", link="lte") == 0
    assert value(run, "multilink_download_progress_ratio") == 0.08


def test_a_resumed_download_begins_with_what_is_there(run: RunMetrics) -> None:
    tell(run, ClientRecord(0, "size", bytes=1000, resumed_bytes=600))
    assert value(run, "multilink_download_progress_ratio") == 0.6
    tell(run, ClientRecord(1, "sample", "wifi", received_bytes=300))
    assert value(run, "multilink_download_progress_ratio") == 0.9


def test_a_run_has_figures_only_once_it_is_over(run: RunMetrics) -> None:
    assert {one.name for one in run.figures()} == {one.name for one in about.METRICS} - {
        about.ENDED.name
    }
    run.conclude(FIGURES, 110.0)
    assert value(run, "linklab_run_failed") == 0
    assert value(run, "linklab_run_download_seconds") == 10.0
    assert value(run, "linklab_run_link_delta_seconds") == 0.5
    assert value(run, "linklab_run_link_received_bytes", link="lte") == 4
    run.conclude(None, 110.0)
    assert value(run, "linklab_run_failed") == 1
    assert "linklab_run_download_seconds" not in {one.name for one in run.figures()}


def test_families_hold_each_series_in_one_piece_and_in_the_order_of_time(run: RunMetrics) -> None:
    tell(run, state(0.0), ClientRecord(0, "request", "wifi", length=1))
    run.conclude(FIGURES, 110.0)
    stamped = [one._replace(timestamp=t) for t in (2.0, 1.0) for one in run.samples()]
    made = families(stamped)
    assert sum(len(metric.samples) for metric in made) == len(stamped)
    assert [metric.name for metric in made] == [
        one.name.removesuffix("_total")
        for one in CATALOGUE
        if one.name.removesuffix("_total") in {metric.name for metric in made}
    ]
    for metric in made:
        series: dict[tuple[str, ...], list[float]] = {}
        last = None
        for one in metric.samples:
            key = (one.name, *sorted(f"{k}={v}" for k, v in one.labels.items()))
            assert key not in series or key == last
            series.setdefault(key, []).append(float(one.timestamp or 0))
            last = key
        assert all(times == [1.0, 2.0] for times in series.values())


def test_a_run_that_is_no_download_has_no_goodput(run: RunMetrics) -> None:
    run.conclude(replace(FIGURES, goodput_bps=None), 110.0)
    assert "linklab_run_goodput_bytes_per_second" not in {one.name for one in run.figures()}


def tell_everything(run: RunMetrics) -> None:
    """A whole run that has a series of every metric."""
    tell(run, state(0.0, up=False), EventRecord(0.0, "lte", "live", "loss 1 %"))
    tell(run, ClientRecord(0, "sample", "wifi", rtt_ns=1))
    moved = Movement("download time", 8.0, 10.0, None)
    played = replace(FIGURES, workload={"startup_s": 1.5, "interruptions": 2.0})
    run.conclude(played, 110.0, BesideBaseline("default", (moved,)))


def test_all_metrics_of_a_whole_run_are_in_the_catalogue_and_the_other_way_round(
    run: RunMetrics,
) -> None:
    tell_everything(run)
    assert value(run, "linklab_run_workload_seconds", figure="startup") == 1.5
    assert value(run, "linklab_run_workload_occurrences", figure="interruptions") == 2
    assert value(run, "linklab_regression_changed_ratio", suite="default") == 0.25
    assert value(run, "linklab_regression_moved_ratio", figure="download time") == math.inf
    names = {metric.name for metric in families(run.samples())}
    assert names == {one.name.removesuffix("_total") for one in CATALOGUE}


class AsText(Collector):
    """A run's metrics for an exposition format."""

    def __init__(self, run: RunMetrics) -> None:
        self._run = run

    def collect(self) -> list[Family]:
        return families(self._run.samples())


def test_promtool_finds_nothing_to_say_of_any_metric(run: RunMetrics) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    tell_everything(run)
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=generate_latest(AsText(run)),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
