import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linklab.runs.payload_share import PayloadShare
from linklab.scenario import Scenario, find
from linklab.scenario.clients import Downloader
from linklab.scenario.workload import Upload, Workload

FILE = "queues.jsonl"


def sample(link: str, sent_bytes: Any, direction: str = "down") -> str:
    more = {"t_s": 1, "queue_bytes": 0, "dropped_packets": 0, "lost_packets": 0}
    return (
        json.dumps({"link": link, "direction": direction, "sent_bytes": sent_bytes, **more}) + "\n"
    )


@pytest.fixture
def scenario() -> Scenario:
    """10 MB over two links."""
    return find("static-80-50")


def test_it_adds_the_links_last_counters(scenario: Scenario, tmp_path: Path) -> None:
    size = scenario.payload.size_bytes
    share = PayloadShare(tmp_path, scenario)
    assert share.now() == 0
    with (tmp_path / FILE).open("a") as file:
        for sent in (size // 8, size // 4):
            print(sample("wifi", sent), sample("lte", sent), sep="", end="", file=file, flush=True)
        print(sample("wifi", size, "up"), end="", file=file, flush=True)
        # Headers count, too.
        assert share.now() == pytest.approx(0.5 * 0.955, abs=0.001)
        print(sample("wifi", 2 * size), end="", file=file, flush=True)
        assert share.now() == 1


def test_an_upload_goes_up(scenario: Scenario, tmp_path: Path) -> None:
    half = scenario.payload.size_bytes // 2
    share = PayloadShare(tmp_path, replace(scenario, workload=Workload(upload=Upload())))
    (tmp_path / FILE).write_text(sample("wifi", half, "down") + sample("wifi", half, "up"))
    assert share.now() == pytest.approx(0.477, abs=0.001)


def test_several_clients_have_a_payload_each(scenario: Scenario, tmp_path: Path) -> None:
    share = PayloadShare(tmp_path, replace(scenario, clients=(Downloader(),) * 2))
    (tmp_path / FILE).write_text(sample("wifi", scenario.payload.size_bytes))
    assert share.now() == pytest.approx(0.477, abs=0.001)


@pytest.mark.parametrize(
    "line",
    ["no record\n", sample("wifi", -1), sample("wifi", "many"), sample("no-link", 1_000_000)],
)
def test_what_a_program_in_the_guest_writes_there_changes_nothing(
    scenario: Scenario, tmp_path: Path, line: str
) -> None:
    share = PayloadShare(tmp_path, scenario)
    (tmp_path / FILE).write_text(sample("wifi", scenario.payload.size_bytes // 2))
    before = share.now()
    with (tmp_path / FILE).open("a") as file:
        file.write(line)
    assert share.now() == before > 0


def test_a_link_to_a_file_of_the_host_is_not_followed(scenario: Scenario, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(sample("wifi", scenario.payload.size_bytes // 2))
    (tmp_path / FILE).symlink_to("other")
    assert PayloadShare(tmp_path, scenario).now() == 0
