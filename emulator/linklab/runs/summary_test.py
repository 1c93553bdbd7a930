import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.core.records import (
    FILES,
    ProcessRecord,
    RecordError,
    RoundTripRecord,
    TrafficRecord,
    line,
)
from linklab.core.records_test import sampled
from linklab.links import oracle
from linklab.models.events import Event
from linklab.runs import job, outcome, summary, workload_figures
from linklab.runs.job_test import JOB
from linklab.runs.outcome import Outcome
from linklab.runs.run_figures import FigureError, LinkFigures
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.clients import Downloader
from linklab.scenario.traffic import Bulk, TrafficFlow
from linklab.scenario.workload import Page, Rounds, Upload, Workload

DONE = Outcome(
    exit_code=0,
    elapsed_ns=200_000_000,
    received_bytes={"wifi": 750_000, "lte": 350_000},
    output_bytes=1_000_000,
)


@pytest.fixture
def run_dir(tmp_path: Path, small: Scenario) -> Path:
    """A run directory of a peer that has downloaded everything."""
    (tmp_path / "scenario.yaml").write_text(to_yaml(small))
    (tmp_path / "client.out").write_text("")
    (tmp_path / "client.err").write_text("")
    job.write(msgspec.structs.replace(JOB, client="aria2-2"), tmp_path)
    ended(tmp_path)
    return tmp_path


def ended(run_dir: Path, **changes: Any) -> None:
    outcome.write(msgspec.structs.replace(DONE, **changes), run_dir)


def test_a_peer_is_measured_by_the_lab(run_dir: Path) -> None:
    figures = summary.write(run_dir)
    assert figures.download_s == pytest.approx(0.2)
    assert figures.goodput_bps == pytest.approx(40e6)
    assert figures.links["wifi"].bytes == round(1e6 * 75 / 110)
    written = json.loads((run_dir / "summary.json").read_text())
    assert written["download_s"] == figures.download_s
    assert list(written["links"]) == ["wifi", "lte"]
    assert outcome.read(run_dir) == DONE


def test_a_run_that_starts_later_has_the_oracle_of_its_own_time(
    run_dir: Path, small: Scenario
) -> None:
    slow = tuple(Event(link, at_s=0.0, cap_bps=1_000_000, duration_s=5.0) for link in small.links)
    (run_dir / "scenario.yaml").write_text(to_yaml(replace(small, events=slow)))
    job.write(msgspec.structs.replace(JOB, client="aria2-2", shift_s=5.0), run_dir)
    least_s = oracle.oracle_s(small)
    assert summary.figures_of(run_dir).oracle_s == pytest.approx(least_s)
    client = {
        "algorithm": "alg3",
        "outcome": "complete",
        "size_bytes": 1_000_000,
        "download_ns": 150_000_000,
        "links": {},
    }
    (run_dir / "client.json").write_text(json.dumps(client))
    assert summary.figures_of(run_dir).efficiency == pytest.approx(least_s / 0.15)
    (run_dir / "client.json").unlink()
    page = Workload(page=Page())
    (run_dir / "scenario.yaml").write_text(to_yaml(replace(small, events=slow, workload=page)))
    loaded = {
        "workload": "page",
        "outcome": "complete",
        "bytes": 1_000_000,
        "duration_ns": 200_000_000,
        "figures": dict.fromkeys(workload_figures.of_workload("page"), 0.1),
    }
    (run_dir / "workload.json").write_text(json.dumps(loaded))
    assert summary.figures_of(run_dir).oracle_s == pytest.approx(least_s)


def messages(run_dir: Path, small: Scenario) -> None:
    """A run that sent messages, without round trips."""
    ended(run_dir, elapsed_ns=900_000_000)
    rounds = Workload(rounds=Rounds(50_000, 5_000))
    (run_dir / "scenario.yaml").write_text(to_yaml(replace(small, workload=rounds)))
    known = workload_figures.of_workload("rounds")
    own = dict.fromkeys((key for key, one in known.items() if not one.by_lab), 0.1)
    done = {"workload": "rounds", "outcome": "complete", "bytes": 1_000_000, "duration_ns": 10**9}
    (run_dir / "workload.json").write_text(json.dumps({**done, "figures": own}))


def test_the_mean_round_trip_is_that_of_all_connections(run_dir: Path, small: Scenario) -> None:
    messages(run_dir, small)
    found = summary.figures_of(run_dir).workload
    assert found is not None
    assert "round_trip_s" not in found, "an earlier linklab recorded none"
    with (run_dir / FILES[RoundTripRecord]).open("wb") as file:
        for t_s, link, rtt_s in ((0.1, "wifi", 0.02), (0.2, "lte", 0.06), (0.4, "wifi", 0.04)):
            file.write(line(RoundTripRecord(t_s=t_s, link=link, port=5000, rtt_s=rtt_s)))
    found = summary.figures_of(run_dir).workload
    assert found is not None
    assert found["round_trip_s"] == pytest.approx(0.04)


def test_multilink_is_measured_by_itself(run_dir: Path) -> None:
    client = {
        "algorithm": "alg3",
        "outcome": "complete",
        "size_bytes": 1_000_000,
        "download_ns": 150_000_000,
        "links": {"wifi": {"bytes": 1_000_000, "finish_ns": 150_000_000}},
    }
    (run_dir / "client.json").write_text(json.dumps(client))
    ended(run_dir, elapsed_ns=900_000_000)
    assert summary.write(run_dir).download_s == pytest.approx(0.15)
    (run_dir / "client.json").write_text(json.dumps({**client, "outcome": "failed"}))
    with pytest.raises(FigureError, match="the download is failed"):
        summary.write(run_dir)


@pytest.mark.parametrize(
    ("err", "out", "words"),
    [
        ("first\nlast\n\n", "other", "last"),
        ("", "only out\n", "only out"),
        ("\n", " ", "it said nothing"),
        ("", "x" * 1_000_000, "x{500}"),
    ],
)
def test_a_client_that_failed_has_the_last_word(
    run_dir: Path, err: str, out: str, words: str
) -> None:
    (run_dir / "client.err").write_text(err)
    (run_dir / "client.out").write_text(out)
    ended(run_dir, exit_code=28)
    with pytest.raises(FigureError, match=f"^the client ended with 28: {words}$"):
        summary.write(run_dir)
    assert not (run_dir / "summary.json").exists()


@pytest.mark.parametrize("arrived", [None, 0, 999_999])
def test_a_peer_that_brought_too_little_has_no_figures(run_dir: Path, arrived: int | None) -> None:
    ended(run_dir, output_bytes=arrived)
    with pytest.raises(FigureError, match=rf"^{arrived or 0} bytes arrived instead of 1000000$"):
        summary.write(run_dir)


def test_a_peer_that_brought_something_else_has_no_figures(run_dir: Path) -> None:
    """As large as the file, and not the file."""
    ended(run_dir, output_sha256=JOB.payload_sha256)
    assert summary.figures_of(run_dir).goodput_bps is not None
    ended(run_dir, output_sha256="11")
    with pytest.raises(FigureError, match=r"^the file's SHA-256 is 11 instead of 00$"):
        summary.write(run_dir)


@pytest.mark.parametrize(
    "name", ["scenario.yaml", "run.json", "outcome.json", "client.json", "queues.jsonl"]
)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("victim")])
def test_no_link_is_followed_and_no_pipe_waited_for(
    run_dir: Path, name: str, make: Callable[[Path], None]
) -> None:
    ended(run_dir)
    (run_dir / name).unlink(missing_ok=True)
    make(run_dir / name)
    (run_dir / "victim").write_text("a secret")
    with pytest.raises(OSError, match=rf"{name}.*plain file|plain file.*{name}") as error:
        summary.figures_of(run_dir)
    assert "a secret" not in str(error.value)


def test_the_summary_is_not_written_through_a_link(run_dir: Path) -> None:
    ended(run_dir)
    (run_dir / "victim").write_text("kept")
    (run_dir / "summary.json").symlink_to("victim")
    with pytest.raises(OSError, match="plain file"):
        summary.write(run_dir)
    assert (run_dir / "victim").read_text() == "kept"


def test_a_program_of_the_user_s_need_not_write_the_file(run_dir: Path) -> None:
    job.write(msgspec.structs.replace(JOB, client=None, command=["true"]), run_dir)
    ended(run_dir, output_bytes=None)
    figures = summary.write(run_dir)
    assert figures.download_s == pytest.approx(0.2)
    assert figures.goodput_bps == pytest.approx(40e6), "more than the file came"
    assert figures.efficiency is not None


def test_a_program_of_the_user_s_that_brings_too_little_is_no_download(run_dir: Path) -> None:
    job.write(msgspec.structs.replace(JOB, client=None, command=["curl"]), run_dir)
    ended(run_dir, output_bytes=100_000)
    with pytest.raises(FigureError, match=r"^100000 bytes arrived instead of 1000000$"):
        summary.write(run_dir)
    ended(run_dir, output_bytes=None, received_bytes={"wifi": 75_000, "lte": 25_000})
    figures = summary.write(run_dir)
    assert (figures.goodput_bps, figures.efficiency) == (None, None)
    assert (figures.goodput_text, figures.efficiency_text) == ("", "")
    assert figures.download_s == pytest.approx(0.2)
    assert figures.links["wifi"] == LinkFigures(bytes=75_000, share=0.75)
    assert figures.carried_bytes == 100_000
    assert summary.read(run_dir) == figures


def test_an_upload_by_a_program_of_the_user_s_is_what_it_sent(
    run_dir: Path, small: Scenario
) -> None:
    uploading = replace(small, workload=Workload(upload=Upload()))
    (run_dir / "scenario.yaml").write_text(to_yaml(uploading))
    job.write(msgspec.structs.replace(JOB, client=None, command=["curl"]), run_dir)
    sent = {"wifi": 1_100_000, "lte": 0}
    ended(run_dir, received_bytes={"wifi": 9_000, "lte": 3_000}, output_bytes=None, sent_bytes=sent)
    assert summary.figures_of(run_dir).links["wifi"].share == 1
    ended(run_dir, sent_bytes=sent, uploaded_sha256=JOB.payload_sha256)
    assert summary.figures_of(run_dir).links["wifi"].share == 1
    ended(run_dir, output_bytes=None, sent_bytes={"wifi": 500_000})
    assert summary.figures_of(run_dir).goodput_bps is None
    ended(run_dir, sent_bytes=sent, uploaded_sha256="11")
    with pytest.raises(FigureError, match="with the SHA-256 11 instead of 00"):
        summary.figures_of(run_dir)


def test_a_run_that_stood_still_says_how_long(run_dir: Path, small: Scenario) -> None:
    sent = ((0.5, 9000), (1.0, 9000), (1.5, 99000))
    samples = [sampled(t_s, "wifi", sent_bytes) for t_s, sent_bytes in sent]
    (run_dir / "queues.jsonl").write_bytes(b"".join(map(line, samples)))
    ended(run_dir, elapsed_ns=1_700_000_000)
    assert summary.write(run_dir).stalled_s == pytest.approx(0.5)
    thinking = Workload(rounds=Rounds(answer_bytes=1_000, request_bytes=100, think_s=0.4))
    (run_dir / "scenario.yaml").write_text(to_yaml(replace(small, workload=thinking)))
    assert summary.write(run_dir).stalled_s is None
    (run_dir / "scenario.yaml").write_text(to_yaml(small))
    job.write(msgspec.structs.replace(JOB, client=None, command=["ping"]), run_dir)
    ended(run_dir, elapsed_ns=1_700_000_000, output_bytes=None, received_bytes={"wifi": 99_000})
    assert summary.write(run_dir).stalled_s is None, "nothing was missing"
    (run_dir / "queues.jsonl").write_text("{}\n")
    with pytest.raises(RecordError, match=r"queues\.jsonl:1: "):
        summary.write(run_dir)


def test_processes_are_figures_where_they_were_sampled(run_dir: Path) -> None:
    assert summary.figures_of(run_dir).processes is None, "never 0"
    with (run_dir / FILES[ProcessRecord]).open("wb") as file:
        for n in range(31):
            sample = ProcessRecord(
                t_s=n / 10, process="server", cpu_s=0.05 * n, rss_bytes=1_000_000
            )
            file.write(line(sample))
    figures = summary.write(run_dir)
    assert figures.processes is not None
    assert set(figures.processes["server"]) == {"1 Hz", "10 Hz"}
    assert figures.processes["server"]["1 Hz"].load_median == pytest.approx(0.5)
    assert summary.read(run_dir) == figures


def several(run_dir: Path, small: Scenario, *algorithms: str) -> None:
    """Makes the run one of several clients, and writes the outcome of the second one."""
    (run_dir / "scenario.yaml").write_text(
        to_yaml(replace(small, clients=tuple(map(Downloader, algorithms))))
    )
    second = run_dir / job.client_directory(2)
    second.mkdir()
    (second / "client.err").write_text("")
    (second / "client.out").write_text("")
    outcome.write(
        msgspec.structs.replace(DONE, elapsed_ns=800_000_000, received_bytes={"wifi": 1_100_000}),
        second,
    )


def test_each_of_several_clients_has_figures_and_a_share(run_dir: Path, small: Scenario) -> None:
    several(run_dir, small, "tested", "curl-wifi")
    found = summary.write(run_dir)
    assert found.clients is not None
    assert [(one.title, one.download_s) for one in found.clients] == [
        ("client 1 aria2-2", 0.2),
        ("client 2 curl-wifi", 0.8),
    ]
    assert found.shares is not None
    assert list(found.shares) == ["all links", "wifi", "lte"]
    assert found.shares["all links"].shares == {
        "client 1 aria2-2": pytest.approx(0.8),
        "client 2 curl-wifi": pytest.approx(0.2),
    }
    assert found.shares["all links"].jain == pytest.approx(25 / 34)
    assert found.stalled_s is None
    assert summary.read(run_dir) == found


def test_a_further_client_that_fails_is_named(run_dir: Path, small: Scenario) -> None:
    several(run_dir, small, "tested", "curl-wifi")
    second = run_dir / job.client_directory(2)
    outcome.write(msgspec.structs.replace(DONE, exit_code=7), second)
    (second / "client.err").write_text("curl: no route\n")
    with pytest.raises(FigureError, match=r"^client 2 \(curl-wifi\): the client ended with 7:"):
        summary.figures_of(run_dir)


def test_flows_of_others_are_figures_of_the_run(run_dir: Path, small: Scenario) -> None:
    flow = TrafficFlow(link="wifi", bulk=Bulk())
    (run_dir / "scenario.yaml").write_text(to_yaml(replace(small, traffic=(flow,))))
    record = TrafficRecord(
        t_s=0.2,
        flow=1,
        link="wifi",
        direction="down",
        kind="bulk",
        from_s=0.0,
        to_s=0.2,
        received_bytes=250_000,
    )
    (run_dir / FILES[TrafficRecord]).write_bytes(line(record))
    found = summary.figures_of(run_dir)
    assert found.traffic is not None
    assert [one.goodput_bps for one in found.traffic] == [10e6]
    assert found.clients is None
    assert found.shares is not None
    assert list(found.shares["wifi"].rates_bps) == ["client 1 aria2-2", "flow 1 bulk down wifi"]
