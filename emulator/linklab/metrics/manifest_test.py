"""Tests manifest.py: what scenario and manifest say about the payload."""

import msgspec
import pytest

from linklab import scenario
from linklab.core.frames import goodput_ratio
from linklab.core.link_state import Direction
from linklab.core.records import ClientRecord, QueueRecord, Record
from linklab.core.records_test import sampled
from linklab.lab.programs.terminal import Terminal, Window
from linklab.metrics.manifest import new_metrics
from linklab.runs.job import NOBODY, Job
from linklab.runs.job_test import JOB

SIZE_BYTES = 20_000_000
SCENARIO = f"""name: small
payload: {{size: {SIZE_BYTES} B}}
links:
  wifi: {{down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}}
  lte: {{down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}}
"""
UPLOAD = "workload: {upload: {}}\n"
PROGRESS = "linklab_download_progress_ratio"
GOODPUT = "linklab_download_goodput_bytes_per_second"


def job(client: str | None, name: str | None = None) -> Job:
    changes = {"seed": 1, "clock": "real", "started_at": "2026-11-21T06:19:34+00:00"}
    return msgspec.structs.replace(JOB, client=client, name=name, **changes)


def wifi(direction: Direction, sent_bytes: int) -> QueueRecord:
    return sampled(1.0, "wifi", sent_bytes, direction)


def told(made: Job, workload: str, *records: Record) -> dict[str, float]:
    """The metrics of Wi-Fi, and those of the run, by their names."""
    metrics = new_metrics("r", made, scenario.parse(SCENARIO + workload), 0.0)
    for record in records:
        metrics.record(1.0, record)
    return {
        one.name: one.value for one in metrics.samples() if one.labels.get("link", "wifi") == "wifi"
    }


def test_of_an_upload_multilink_tells_what_went_and_the_scenario_how_much_there_is() -> None:
    sent = (
        ClientRecord(0, "request", "wifi", length=5_000_000),
        ClientRecord(1, "end", "wifi", bytes=5_000_000),
        ClientRecord(1, "end", "lte", bytes=5_000_000, wasted_bytes=1_000_000),
    )
    shown = told(job("alg3"), UPLOAD, *sent, wifi("up", 5_500_000), wifi("down", 300_000))
    assert shown[PROGRESS] == shown["multilink_download_progress_ratio"] == 0.5
    assert shown["multilink_received_bytes_total"] == 5_000_000
    assert shown[GOODPUT] == 5_000_000


@pytest.mark.parametrize(
    ("workload", "carried_bytes"), [("", 300_000), (UPLOAD, 10_000_000)], ids=["down", "up"]
)
def test_of_another_program_the_direction_of_the_payload_counts(
    workload: str, carried_bytes: int
) -> None:
    shown = told(job("curl-wifi"), workload, wifi("up", 10_000_000), wifi("down", 300_000))
    assert shown[GOODPUT] == carried_bytes * goodput_ratio()
    assert shown[PROGRESS] == carried_bytes * goodput_ratio() / SIZE_BYTES


SHELL = Terminal(window=Window(24, 80), on="client")


@pytest.mark.parametrize(
    "made",
    [job(None, NOBODY), msgspec.structs.replace(job(None, "shell"), terminal=SHELL)],
    ids=["live", "shell"],
)
def test_where_nobody_downloads_there_is_traffic_and_no_progress(made: Job) -> None:
    shown = told(made, "", wifi("down", 2 * SIZE_BYTES))
    assert PROGRESS not in shown
    assert shown[GOODPUT] == 2 * SIZE_BYTES * goodput_ratio()
