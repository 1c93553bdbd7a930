import csv
import json
import re
from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

import linklab
from linklab.analysis.run import LoadError
from linklab.analysis.schemas import schemas
from linklab.analysis.tables import TABLES, write_csv, write_parquet
from linklab.core import records
from linklab.core.link_state import LinkState
from linklab.core.paths import REPOSITORY
from linklab.core.records import EventRecord, LinkRecord, ProcessRecord
from linklab.core.records_test import sampled
from linklab.energy import library
from linklab.energy.model import to_yaml as to_yaml_of_model
from linklab.runs import job, outcome
from linklab.runs.job_test import JOB
from linklab.runs.outcome import Outcome
from linklab.scenario import Scenario, to_yaml

EVENTS = """\
{"t_ns":0,"event":"start","algorithm":"alg3"}
{"t_ns":1000000,"event":"request","link":"wifi","id":1,"offset":0,"length":600000,"rate_bps":0}
{"t_ns":2000000,"event":"first_byte","link":"wifi","id":1}
{"t_ns":3000000,"event":"sample","link":"wifi","received_bytes":7,"throughput_bps":8.5,\
"rtt_ns":11000000,"min_rtt_ns":10000000,"in_flight":1}
{"t_ns":4000000,"event":"request","link":"lte","id":2,"offset":5,"length":9,"rate_bps":2.5,\
"from":"wifi"}
{"t_ns":5000000,"event":"end","link":"wifi","id":1,"bytes":600000,"outcome":"complete",\
"wasted_bytes":3}
"""


def made(
    directory: Path, scenario: Scenario, *, contestant: str = "alg3", **changes: object
) -> Path:
    """The directory of a run of multilink that downloaded everything."""
    directory.mkdir(parents=True)
    (directory / "scenario.yaml").write_text(to_yaml(scenario))
    job.write(msgspec.structs.replace(JOB, client=contestant, **changes), directory)
    outcome.write(
        Outcome(exit_code=0, elapsed_ns=1, received_bytes={}, output_bytes=1_000_000), directory
    )
    client = {
        "algorithm": contestant,
        "outcome": "complete",
        "size_bytes": 1_000_000,
        "download_ns": 200_000_000,
        "links": {
            "wifi": {"bytes": 600_000, "finish_ns": 200_000_000, "requests": 1},
            "lte": {"bytes": 400_000, "finish_ns": 150_000_000},
        },
    }
    (directory / "client.json").write_text(json.dumps(client))
    (directory / "client.jsonl").write_text(EVENTS)
    queue = sampled(0.5, "wifi", 1, queue_bytes=2, dropped_packets=3, lost_packets=4)
    (directory / "queues.jsonl").write_bytes(records.line(queue))
    (directory / "events.jsonl").write_bytes(records.line(EventRecord(0.1, "lte", "carriers", "2")))
    return directory


def test_runs_are_loaded_from_above_and_in_order(tmp_path: Path, small: Scenario) -> None:
    for name in ("b", "a/2", "a/1"):
        made(tmp_path / name, small)
    runs = linklab.load(tmp_path)
    assert [run.path for run in runs] == [tmp_path / name for name in ("a/1", "a/2", "b")]
    assert [run.name for run in linklab.load(tmp_path / "b", str(tmp_path / "a"))] == [
        "b",
        "1",
        "2",
    ]
    first = runs[0]
    assert first.figures.download_s == 0.2
    assert first.scenario == small
    assert first.contestant == "alg3"


def test_a_request_is_put_together_from_its_events(tmp_path: Path, small: Scenario) -> None:
    (run,) = linklab.load(made(tmp_path / "run", small, shift_s=1.0))
    one, two = run.requests
    assert (one.id, one.link, one.length, one.outcome, one.wasted_bytes) == (
        1,
        "wifi",
        600_000,
        "complete",
        3,
    )
    assert (one.start_s, one.first_byte_s, one.end_s) == pytest.approx((1.001, 1.002, 1.005))
    assert (two.from_link, two.end_s, two.outcome, two.rate_bps) == ("wifi", None, "", 2.5)
    (sample,) = run.samples
    assert (sample.t_s, sample.rtt_s, sample.in_flight) == pytest.approx((1.003, 0.011, 1))


MAY_BE_EMPTY = (
    *("states", "power", "processes", "process-samples", "workload"),
    *("traffic", "clients", "shares"),
)


def test_every_table_says_whose_row_it_is(tmp_path: Path, small: Scenario) -> None:
    runs = linklab.load(made(tmp_path / "run", small))
    for table in TABLES:
        rows = list(runs.rows(table))
        assert rows or table in MAY_BE_EMPTY
        for row in rows:
            assert list(row)[:4] == ["run", "scenario", "contestant", "seed"]
    (row,) = runs.rows()
    assert (row["download_s"], row["goodput_bps"], row["error"]) == (0.2, 40e6, None)
    assert row["size_bytes"] == 1_000_000
    assert [row["link"] for row in runs.rows("links")] == ["wifi", "lte"]
    with pytest.raises(LoadError, match="no table 'x'; allowed: runs, links"):
        list(runs.rows("x"))


def with_energy_and_processes(directory: Path, small: Scenario) -> None:
    """Has a run of `made` be one on the real clock, with an energy model."""
    job.write(msgspec.structs.replace(job.read(directory), clock="real", shift_s=0.0), directory)
    (directory / job.ENERGY_FILE).write_text(to_yaml_of_model(library.get("galaxy-s7")))
    up = LinkState(True, 8_000_000, 1, 0.01, 0.0, 0.0)
    states = [LinkRecord.of(up, t_s=0.0, late_s=0.0, link=link) for link in small.links]
    (directory / "links.jsonl").write_bytes(b"".join(map(records.line, states)))
    used = [
        ProcessRecord(t_s=t_s, process="client", cpu_s=t_s / 4, rss_bytes=15_000_000)
        for t_s in (0.0, 1.0, 2.0, 3.0)
    ]
    (directory / "processes.jsonl").write_bytes(b"".join(map(records.line, used)))


def test_energy_and_processes_are_in_tables(tmp_path: Path, small: Scenario) -> None:
    directory = made(tmp_path / "run", small)
    with_energy_and_processes(directory, small)
    runs = linklab.load(directory)
    (row,) = runs.rows()
    figures = runs[0].figures
    assert figures is not None
    assert figures.energy is not None
    assert (row["energy_model"], row["joules"]) == ("galaxy-s7", figures.energy.joules)
    assert row["joules"] == pytest.approx(row["main_j"] + row["tail_j"])
    links = list(runs.rows("links"))
    assert [one["joules"] for one in links] == [
        figures.energy.links[one["link"]].joules for one in links
    ]
    power = list(runs.rows("power"))
    device = [one for one in power if one["link"] is None]
    drawn_j = sum(one["power_w"] * one["length_s"] for one in device)
    assert drawn_j == pytest.approx(figures.energy.joules)
    assert {one["link"] for one in power} == {None, "wifi", "lte"}
    looked = {one["every"]: one for one in runs.rows("processes")}
    assert looked["1 Hz"]["load_median"] == pytest.approx(0.25)
    assert looked["1 Hz"]["cpu_s"] == pytest.approx(0.75)
    assert [one["rss_bytes"] for one in runs.rows("process-samples")] == [15_000_000] * 4


def test_in_virtual_time_processes_are_nothing_and_never_zero(
    tmp_path: Path, small: Scenario
) -> None:
    runs = linklab.load(made(tmp_path / "run", small))
    assert list(runs.rows("processes")) == list(runs.rows("process-samples")) == []
    (row,) = runs.rows()
    assert row["clock"] == "virtual"
    assert (row["energy_model"], row["joules"]) == (None, None), "no model is named"


def test_a_table_as_a_data_frame(tmp_path: Path, small: Scenario) -> None:
    made(tmp_path / "a", small)
    made(tmp_path / "b", small, contestant="alg1")
    frame = linklab.load(tmp_path).frame("links")
    assert list(frame["link"]) == ["wifi", "lte"] * 2
    assert frame.groupby("contestant")["bytes"].sum().to_dict() == {
        "alg1": 1_000_000,
        "alg3": 1_000_000,
    }


def test_a_failed_run_is_a_row_without_figures(tmp_path: Path, small: Scenario) -> None:
    directory = made(tmp_path / "run", small)
    (directory / "client.json").unlink()
    outcome.write(
        Outcome(exit_code=1, elapsed_ns=1, received_bytes={}, output_bytes=None), directory
    )
    for name in ("client.err", "client.out"):
        (directory / name).write_text("no route\n")
    (row,) = linklab.load(directory).rows()
    assert (row["download_s"], row["error"]) == (None, "the client ended with 1: no route")
    assert list(linklab.load(directory).rows("links")) == []


def test_a_run_of_the_field_has_what_its_client_tells(tmp_path: Path, small: Scenario) -> None:
    directory = made(tmp_path / "field", small)
    for name in ("run.json", "scenario.yaml", "outcome.json"):
        (directory / name).unlink()
    (run,) = linklab.load(directory)
    assert (run.contestant, run.scenario, len(run.requests)) == ("alg3", None, 2)
    (row,) = linklab.load(directory).rows()
    assert (row["place"], row["seed"], row["download_s"]) == ("field", None, None)


def test_files_hold_what_the_rows_hold(tmp_path: Path, small: Scenario) -> None:
    """Names and words that mean something in CSV, or in other alphabets, too."""
    made(tmp_path / 'a, "b"\n=1+1', small)
    made(tmp_path / "ü", small, contestant="alg1")
    rows = list(linklab.load(tmp_path).rows())
    assert write_csv(rows, tmp_path / "out.csv") == 2
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        back = list(csv.DictReader(file))
    assert [row["run"] for row in back] == [row["run"] for row in rows]
    assert [float(row["download_s"]) for row in back] == [0.2, 0.2]
    assert write_parquet(rows, tmp_path / "out.parquet") == 2
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == rows


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda one: (one / "run.json").write_text('{"format": 2}'), "run.json: .*reads format 1"),
        (lambda one: (one / "queues.jsonl").write_text("[]\n"), "queues.jsonl:1: "),
    ],
)
def test_what_cannot_be_read_is_named(
    break_it: object, words: str, tmp_path: Path, small: Scenario
) -> None:
    directory = made(tmp_path / "run", small)
    break_it(directory)  # type: ignore[operator]
    with pytest.raises(LoadError, match=words):
        for table in TABLES:
            list(linklab.load(tmp_path).rows(table))


def test_what_holds_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="is no run directory and holds none"):
        linklab.load(tmp_path)
    with pytest.raises(LoadError, match="is no directory"):
        linklab.load(tmp_path / "nowhere")


def test_every_file_has_a_schema() -> None:
    """As the handbook names them; no type reads the others."""
    page = REPOSITORY / "emulator" / "handbook" / "reference" / "run-directory.md"
    table = "\n".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([a-z0-9-]+\.jsonl?)`", table))
    told = schemas()
    assert set(told) == named - {"mptcp.json", "workload.jsonl", "h2o-access.jsonl"}
    fields = told["run.json"]["$defs"]["Job"]
    assert fields["properties"]["format"] == {"enum": [1], "default": 1}
    assert "rate_bps" in told["client.jsonl"]["$defs"]["ClientRecord"]["properties"]
