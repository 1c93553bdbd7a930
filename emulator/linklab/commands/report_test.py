import html as entities
import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab import scenario
from linklab.commands import existing, report_page
from linklab.commands.cli import main
from linklab.commands.existing import EnergyModels
from linklab.core import records
from linklab.core.link_state import LinkState
from linklab.core.records import FILES, ClientRecord, LinkRecord, ProcessRecord, QueueRecord
from linklab.energy import library
from linklab.energy.model import to_yaml
from linklab.report import publication
from linklab.report.page import all_charts
from linklab.runs import job, loaded_runs, loaded_runs_test, summary
from linklab.runs.job_test import JOB
from linklab.runs.run_figures import LinkFigures, ProcessFigures, RunFigures
from linklab.runs.workload_figures import ROUND_TRIP
from linklab.scenario import Scenario
from linklab.scenario.workload import Page, Rounds, Upload, Workload

HOSTILE = "</script><script>alert('1')</script><img src=x onerror=alert(2)>"


pytestmark = pytest.mark.usefixtures("no_library")


def made(
    parent: Path, who: str, seed: int, of: Scenario, download_s: float, **versions: str
) -> Path:
    """A run directory."""
    name = f"{of.name}-{len(who)}{who[:6]}-{seed}".replace("/", "")
    manifest = {"scenario": of.name, "client": who, "seed": seed}
    run_dir = loaded_runs_test.made(
        parent, name, of, **manifest, versions={**JOB.versions, **versions}
    )
    figures = RunFigures(
        download_s=download_s,
        goodput_bps=8 * of.payload.size_bytes / download_s,
        oracle_s=1.0,
        efficiency=1 / download_s,
        link_delta_s=None,
        links={"wifi": LinkFigures(bytes=1_000_000, share=1.0, finish_s=download_s)},
    )
    (run_dir / summary.FILE).write_bytes(msgspec.json.encode(figures))
    return run_dir


def change(run_dir: Path, **figures: Any) -> None:
    """Gives a run other figures."""
    changed = replace(summary.read(run_dir), **figures)
    (run_dir / summary.FILE).write_bytes(msgspec.json.encode(changed))


def page(runs: Path, code: int = 0) -> str:
    output = runs.parent / "report.html"
    assert main(["report", str(runs), "-o", str(output)]) == code
    return output.read_text()


def words(text: str) -> str:
    """What a page says, without tags."""
    body = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.S)
    return " ".join(entities.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_program_that_brought_no_file_stands_there_without_goodput(
    tmp_path: Path, small: Scenario
) -> None:
    run_dir = made(tmp_path / "runs", "ping", 1, small, 2.0)
    change(run_dir, goodput_bps=None, efficiency=None)
    said = words(page(tmp_path / "runs"))
    assert re.search(r"ping 1 2\.\S+( s)? \S+ - - ", said)
    assert "No run delivered the whole file." in said


def test_who_brought_no_whole_file_wins_nothing(tmp_path: Path, small: Scenario) -> None:
    """Neither a program that is no download, nor one that an earlier call left a part to."""
    for who, goodput_bps, seconds in (("ping", None, 1.0), ("rest", 3e6, 2.0), ("alg3", 2e6, 4.0)):
        run_dir = made(tmp_path / "runs", who, 1, small, seconds)
        change(run_dir, goodput_bps=goodput_bps)
    said = words(page(tmp_path / "runs"))
    assert "small alg3 4.00 s - nobody else ran" in said
    assert "as percent of each other" not in said


def test_an_efficiency_above_1_has_the_full_colour(tmp_path: Path, small: Scenario) -> None:
    """More than 100 % is no colour."""
    for who, download_s in (("offloading-ack", 0.5), ("curl-wifi", 1.25)):
        made(tmp_path / "runs", who, 1, small, download_s)
    written = page(tmp_path / "runs")
    assert re.findall(r"--heat\) (\d+)%[^>]*>([\d.]+)<", written) == [
        ("48", "0.800"),
        ("100", "2.000"),
    ]


def test_names_need_not_be_utf_8(tmp_path: Path, small: Scenario) -> None:
    runs = tmp_path / os.fsdecode(b"runs\xff")
    made(runs, "alg3", 1, small, 2.0)
    made(runs, "naive", 1, small, 2.0).joinpath(summary.FILE).write_text("{")
    assert "runs\\udcff" in page(runs, 1)


def test_the_question_is_answered_first(tmp_path: Path, small: Scenario) -> None:
    for seed in range(1, 9):
        made(tmp_path / "runs", "alg3", seed, small, 2 + seed / 100)
        made(tmp_path / "runs", "naive", seed, small, 2.4 + seed / 100)
    said = words(page(tmp_path / "runs"))
    assert "small alg3 2.04 s +19.6 % naive yes +19." in said
    assert "16 runs." in said
    assert "seeds 1 to 8" in said
    copied = f"cp {tmp_path}/runs/small-5naive-1/scenario.yaml small.yaml"
    repeats = "linklab compare small.yaml -a naive,alg3 --seed 1 --runs 8"
    assert f"To repeat: {copied} && {repeats}" in said
    assert said.index("alg3") < said.index("Efficiency") < said.index("Scenarios")


def looked_at(load: float, memory_bytes: float | None) -> dict[str, ProcessFigures]:
    """A process that was looked at once a second."""
    area = None if memory_bytes is None else 9 * memory_bytes
    one = ProcessFigures(
        10, load / 2, load, 2 * load, 3 * load, 0.1, 9 * load, memory_bytes, 0.1, area
    )
    return {"1 Hz": one}


def on_the_real_clock(
    run_dir: Path, processes: dict[str, dict[str, ProcessFigures]] | None
) -> None:
    """Has a run directory be one of the real clock, with what its processes used."""
    job.write(msgspec.structs.replace(job.read(run_dir), clock="real"), run_dir)
    change(run_dir, processes=processes)


@pytest.mark.parametrize("title", ["", "a title"])
@pytest.mark.parametrize("source", ["", "a source"])
def test_what_a_scenario_does_not_say_leaves_no_gap(
    tmp_path: Path, small: Scenario, title: str, source: str
) -> None:
    made(tmp_path / "runs", "mptcp", 1, replace(small, title=title, source=source), 3.0)
    (about,) = re.findall(r'<p class="dim">(.*? clock)</p>', page(tmp_path / "runs"))
    whose = " ".join(filter(None, (title, source and f"({source})")))
    size = f"{small.payload.size_bytes / 1e6:g} MB"
    assert about.startswith(f"{whose}; {size}; " if whose else f"{size}; ")


def test_a_workload_s_own_figures_are_shown(tmp_path: Path, small: Scenario) -> None:
    paged = replace(small, workload=Workload(page=Page()))
    for seed, load_s in ((1, 1.25), (2, 2.25)):
        run_dir = made(tmp_path / "runs", "mptcp", seed, paged, 3.0)
        own = {"page_load_s": load_s, "document_s": 0.125, "object_s": 0.0625}
        change(run_dir, workload=own)
    text = words(page(tmp_path / "runs"))
    assert "time to load the page time to load its document median time of an object" in text
    assert "1.750 s 0.125 s 0.062 s" in text


def test_runs_without_a_figure_that_the_lab_measures_are_shown(
    tmp_path: Path, small: Scenario
) -> None:
    """Runs of an earlier linklab, and of several clients, have no round trips of TCP."""
    rounds = replace(small, workload=Workload(rounds=Rounds(20_000, 200)))
    own = {"latency_s": 0.25, "latency_p90_s": 0.5, "latency_p99_s": 0.75, "latency_max_s": 1.0}
    for seed, more in ((1, {}), (2, {ROUND_TRIP: 0.125}), (3, {ROUND_TRIP: 0.375})):
        run_dir = made(tmp_path / "runs", "alg3", seed, rounds, 2.0)
        change(run_dir, workload={**own, **more})
    said = words(page(tmp_path / "runs"))
    assert "mean round trip of TCP" in said
    assert "0.250 s 0.500 s 0.750 s 1.000 s 0.250 s" in said


def test_processor_and_memory_are_of_the_real_clock(tmp_path: Path, small: Scenario) -> None:
    for seed, load in ((1, 0.2), (2, 0.4)):
        run_dir = made(tmp_path / "runs", "alg3", seed, small, 2.0)
        used = {"client": looked_at(load, 15e6), "server": looked_at(0.1, None)}
        on_the_real_clock(run_dir, used)
        sampled = [
            ProcessRecord(t_s=t_s, process="client", cpu_s=t_s * load, rss_bytes=15_000_000)
            for t_s in (0.0, 1.0, 2.0)
        ]
        (run_dir / FILES[ProcessRecord]).write_bytes(b"".join(map(records.line, sampled)))
    text = page(tmp_path / "runs")
    said = words(text)
    assert "guest, real clock" in said
    assert "--seed 1 --runs 2 --clock real" in said
    assert "alg3 client 15.0 % 30.0 % 60.0 % 2.70 s 15.0 MB 135 MB s" in said
    assert "alg3 server 5.0 % 10.0 % 20.0 % 0.90 s - -" in said
    assert "alg3: processor of seed 1" in said
    assert "alg3: memory of seed 1" in said
    assert "not applicable" not in said
    picture = tmp_path / "x.svg"
    for name in ("small/processor", "small/alg3/processor", "small/alg3/memory"):
        assert main(["plot", str(tmp_path / "runs"), "--figure", name, "-o", str(picture)]) == 0
        assert "client" in picture.read_text()


def test_virtual_time_has_neither_processor_nor_memory(tmp_path: Path, small: Scenario) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    said = words(page(tmp_path / "runs"))
    assert "1 MB; seed 1; guest, virtual clock" in said
    assert "--clock" not in said
    assert "Processor and memory: not applicable in virtual time" in said
    assert "% of a core" not in said
    on_the_real_clock(made(tmp_path / "other", "alg3", 1, small, 2.0), None)
    assert "Processor and memory: not sampled" in words(page(tmp_path / "other"))


def test_clocks_are_never_pooled(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs" / "virtual", "alg3", 1, small, 2.0)
    on_the_real_clock(made(tmp_path / "runs" / "real", "alg3", 1, small, 4.0), None)
    output = tmp_path / "x.html"
    both = [str(tmp_path / "runs" / one) for one in ("virtual", "real")]
    assert main(["report", *both, "-o", str(output)]) == 0
    said = words(output.read_text())
    assert "small (guest, virtual clock) alg3 2.00 s" in said
    assert "small (guest, real clock) alg3 4.00 s" in said
    assert "small ran on several clocks" in capsys.readouterr().err


def test_what_could_be_noise_is_called_so(tmp_path: Path, small: Scenario) -> None:
    for seed, (one, other) in enumerate(
        [(2.0, 2.3), (2.2, 2.0), (2.1, 2.15), (2.4, 2.2), (2.1, 2.3)]
    ):
        made(tmp_path / "runs", "alg3", seed, small, one)
        made(tmp_path / "runs", "naive", seed, small, other)
    assert "not clear" in words(page(tmp_path / "runs"))


def test_a_difference_of_nothing_is_none(tmp_path: Path, small: Scenario) -> None:
    for seed in range(5):
        made(tmp_path / "runs", "alg3", seed, small, 2.0)
        made(tmp_path / "runs", "naive", seed, small, 2.0008)
    assert "+0.0 % naive no difference" in words(page(tmp_path / "runs"))


def test_only_what_has_an_efficiency_is_in_its_table(tmp_path: Path, small: Scenario) -> None:
    """A player waits for its film, so it has none."""
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    without = made(tmp_path / "runs", "naive", 1, small, 2.0)
    change(without, efficiency=None)
    heat = page(tmp_path / "runs").partition("<h2>Efficiency</h2>")[2].partition("</table>")[0]
    assert ("alg3" in heat, "naive" in heat) == (True, False)


def test_from_five_runs_on_noise_is_judged(tmp_path: Path, small: Scenario) -> None:
    for seed in range(1, 6):
        made(tmp_path / "runs", "alg3", seed, small, 2 + seed / 50)
        made(tmp_path / "runs", "naive", seed, small, 3 + seed / 50)
        said = words(page(tmp_path / "runs"))
        told = {1: "one run: no telling -", 5: "yes +4"}.get(seed, "too few runs to tell -")
        assert f"% naive {told}" in said
        interval = {5: "2.02 to 2.10"}.get(seed, "-")
        assert f"alg3 {seed} {2 + (seed + 1) / 100:.2f} s {interval} " in said
    assert "by the bootstrap over seeds, from 5 runs on" in said


def test_names_with_html_stay_names(tmp_path: Path, small: Scenario) -> None:
    hostile = replace(small, title=HOSTILE, source=HOSTILE)
    made(tmp_path / "runs", HOSTILE, 1, hostile, 2.0, linklab=HOSTILE)
    failed = made(tmp_path / "runs", f"{HOSTILE}2", 1, hostile, 2.0)
    (failed / summary.FILE).write_text(HOSTILE)
    text = page(tmp_path / "runs", code=1)
    assert "<img" not in text
    assert "alert('1')</script>" not in text
    assert entities.escape(HOSTILE, quote=False).replace("'", "&#39;") in text
    assert text.count("<script") == text.count("</script") == 4
    charts = re.findall(r'<script type="application/json">(.*?)</script>', text, re.S)
    assert HOSTILE in {row.get("client") for row in json.loads(charts[0])["data"]["values"]}


def test_scenarios_that_differ_are_never_pooled(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = replace(small, payload=replace(small.payload, size_bytes=2_000_000))
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    made(tmp_path / "runs", "alg3", 2, larger, 4.0)
    said = words(page(tmp_path / "runs"))
    assert "2 different scenarios are called small: each is shown by itself" in said
    assert "small (1) alg3 2.00 s" in said
    assert "small (2) alg3 4.00 s" in said
    assert "2 different scenarios" in capsys.readouterr().err


def test_runs_without_samples_are_said(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs", "naive", 1, small, 2.0)
    (made(tmp_path / "runs", "alg3", 1, small, 2.0) / FILES[QueueRecord]).unlink()
    assert "1 of the runs lack queues.jsonl" in words(page(tmp_path / "runs"))
    assert "1 of the runs lack queues.jsonl" in capsys.readouterr().err


def test_runs_that_failed_and_other_builds_are_said(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0, multilink_sha256="a")
    made(tmp_path / "runs", "alg3", 2, small, 2.0, multilink_sha256="b")
    (made(tmp_path / "runs", "naive", 1, small, 2.0) / summary.FILE).unlink()
    said = words(page(tmp_path / "runs", code=1))
    assert "1 more failed" in said
    assert "naive : " in said
    assert "outcome.json" in capsys.readouterr().err
    assert "2 different builds of multilink" in said


def test_nothing_but_failures_is_a_page_too(tmp_path: Path, small: Scenario) -> None:
    run_dir = made(tmp_path / "runs", "naive", 1, small, 2.0)
    (run_dir / summary.FILE).unlink()
    state = LinkState(
        up=True, down_rate_bps=80, up_rate_bps=8, delay_s=0.02, jitter_s=0.0, loss_ratio=0.0
    )
    lines = [LinkRecord.of(state, t_s=t_s, late_s=0.0, link="wifi") for t_s in (0.0, 2.0)]
    (run_dir / FILES[LinkRecord]).write_bytes(b"".join(map(records.line, lines)))
    said = words(page(tmp_path / "runs", code=1))
    assert "No run has figures." in said
    assert "Which runs failed, and why?" in said
    assert "what its links could carry, and did" in said


def test_the_same_run_twice_is_refused(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "a", "alg3", 1, small, 2.0)
    made(tmp_path / "b", "alg3", 1, small, 2.0)
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "small alg3, seed 1 is there twice: " in capsys.readouterr().err


def test_publications_are_held_against_scenarios_that_ship(tmp_path: Path) -> None:
    of = scenario.find("hs-s7")
    made(tmp_path / "runs", "alg3", 1, of, 16.0)
    said = words(page(tmp_path / "runs"))
    assert "To repeat: linklab compare hs-s7 -a alg3 --seed 1 --runs 1" in said
    assert "What thesis states" in said
    assert "download hs-s7 alg3 16.55 s 16.00 s holds? - table 5.12" in said
    assert "download: 1 of 1 values, median error 3.3 %" in said
    made(tmp_path / "other", "alg3", 1, replace(of, sample_s=1.0), 16.0)
    assert "What thesis states" not in words(page(tmp_path / "other"))


def test_publications_are_held_against_what_their_campaign_makes(tmp_path: Path) -> None:
    of = publication.find("super-aggregation").scenario("superagg-acks-1m")
    for who, download_s in (("offloading-ack", 53.8), ("curl-wifi", 115.2)):
        made(tmp_path, who, 1, of, download_s)
    said = words(page(tmp_path))
    assert said.count("What super-aggregation states") == 2, "a link, and the part"
    (copied,) = re.findall(r"To repeat: (cp \S+ superagg-acks-1m\.yaml) && linklab compare", said)
    subprocess.run(shlex.split(copied), cwd=tmp_path, check=True)
    assert main(["scenarios", str(tmp_path / "superagg-acks-1m.yaml")]) == 0
    assert "superagg-acks-1m: offloading-ack to curl-wifi 11.27 Mbit/s 12.28 Mbit/s" in said


def test_why_a_statement_fails_is_said_and_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = HOSTILE.replace("'", "''")
    stated = publication.parse(
        "name: ours\ntitle: Ours\nsource: thesis\nstatements:\n"
        f"  - {{metric: download, source: s, within: 1 %, why: '{why}', values: {{hs-s7: {{alg3: 9 s}}}}}}\n",
        "ours.yaml",
    )
    monkeypatch.setattr(publication, "names", lambda: ["ours"])
    monkeypatch.setattr(publication, "find", lambda _: stated)
    made(tmp_path / "runs", "alg3", 1, scenario.find("hs-s7"), 16.0)
    text = page(tmp_path / "runs")
    assert "<img" not in text
    assert f"why: {HOSTILE}" in words(text)
    assert "the miss is explained" in words(text)


def test_one_seed_in_the_guest_and_on_the_host_are_two_runs(tmp_path: Path) -> None:
    of = scenario.find("hs-s7")
    for place, download_s in (("guest", 16.0), ("host", 18.0)):
        run_dir = made(tmp_path / place, "alg3", 1, of, download_s)
        changed = msgspec.structs.replace(job.read(run_dir), place=place, clock="real")
        job.write(changed, run_dir)
    both = [str(tmp_path / one) for one in ("guest", "host")]
    output = tmp_path / "x.html"
    assert main(["report", *both, "-o", str(output)]) == 0
    said = words(output.read_text())
    assert "hs-s7 (guest, real clock) alg3 16.00 s" in said
    assert "hs-s7 (host, real clock) alg3 18.00 s" in said
    assert "download hs-s7 alg3 16.55 s 16.00 s holds?" in said


def test_wasted_is_one_figure(tmp_path: Path, small: Scenario) -> None:
    """What came late, too, which no request's end tells."""
    run_dir = made(tmp_path / "runs", "alg3", 1, small, 2.0)
    links = {
        name: replace(one, wasted_bytes=1_900_000)
        for name, one in summary.read(run_dir).links.items()
    }
    change(run_dir, links=links)
    lines: list[dict[str, object]] = [
        {"t_ns": 0, "event": "request", "link": "wifi", "id": 1, "offset": 0, "length": 9},
        {"t_ns": 1, "event": "end", "link": "wifi", "id": 1, "bytes": 9, "outcome": "complete"},
    ]
    (run_dir / FILES[ClientRecord]).write_text("".join(json.dumps(one) + "\n" for one in lines))
    said = words(page(tmp_path / "runs"))
    assert "- 1.9 MB Download times" in said
    assert "1 complete, 1.9 MB wasted" in said


def test_of_an_upload_the_throughput_is_what_went_up(tmp_path: Path, small: Scenario) -> None:
    upload = replace(small, workload=Workload(upload=Upload()))
    run_dir = made(tmp_path / "runs", "alg3", 1, upload, 2.0)
    state = LinkState(True, 60_000_000, 20_000_000, 0.01, 0.0, 0.0)
    line = records.line(LinkRecord.of(state, t_s=0.0, late_s=0.0, link="wifi"))
    (run_dir / FILES[LinkRecord]).write_bytes(line)
    models = EnergyModels()
    shown, _ = report_page.context(existing.read([run_dir], models), models)
    (spec,) = [one.spec for one in all_charts(shown) if one.name.endswith("/rates")]
    values = spec["data"]["values"]
    assert {one["r"] for one in values if "r" in one} == {3.2, 4.8}
    assert {one["c"] for one in values if "c" in one} == {20}


def test_the_command_of_a_page_holds_no_password(
    tmp_path: Path, small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    monkeypatch.setattr("sys.argv", ["linklab", "publish", "--grafana", "http://me:secret@g:3000"])
    text = page(tmp_path / "runs")
    assert "linklab publish --grafana http://g:3000" in text
    assert "secret" not in text


def test_a_figure_by_itself(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    picture = tmp_path / "x.svg"
    words = ["plot", str(tmp_path / "runs"), "--figure"]
    assert main([*words, "small/alg3/rates", "-o", str(picture)]) == 0
    assert picture.read_text().startswith("<svg")
    assert main([*words, "small/alg3/rate", "-o", str(picture)]) == 2
    told = capsys.readouterr().err
    assert "(did you mean 'small/alg3/rates'?); there are: small/times, small/alg3/rates" in told
    assert main([*words, "small/times"]) == 2
    assert "needs -o FILE.svg or -o FILE.png" in capsys.readouterr().err


@pytest.mark.parametrize("output", [".", ""])
def test_a_page_has_a_name(
    tmp_path: Path, small: Scenario, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    assert main(["report", str(tmp_path / "runs"), "-o", output]) == 2
    assert "Is a directory: '.'" in capsys.readouterr().err


def test_reproduce_writes_a_page_too(tmp_path: Path) -> None:
    of = scenario.find("hs-s7")
    made(tmp_path / "runs", "alg3", 1, of, 16.0)
    output = tmp_path / "x.html"
    words = ["reproduce", "thesis", "--from", str(tmp_path / "runs"), "--report", str(output)]
    assert main(words) == 0
    assert "What thesis states" in output.read_text()


def test_energy_is_shown_by_the_scenario_s_model(tmp_path: Path) -> None:
    """Runs of before there were models are counted by that of now."""
    of = scenario.find("hs-s7")
    run_dir = made(tmp_path / "runs", "alg3", 1, of, 2.0)
    state = LinkState(True, 8_000_000, 1, 0.01, 0.0, 0.0)
    lines = [LinkRecord.of(state, t_s=0.0, late_s=0.0, link=link) for link in of.links]
    (run_dir / FILES[LinkRecord]).write_bytes(b"".join(map(records.line, lines)))
    text = page(tmp_path / "runs")
    assert re.search(r"<td>[0-9.]+&nbsp;J</td>", text)
    assert "Energy against time : by the model galaxy-s7" in words(text)
    assert "alg3: power of seed 1 : by galaxy-s7" in words(text)


def test_energy_by_another_model_and_never_by_several(tmp_path: Path) -> None:
    of = scenario.find("hs-s7")
    for who, own in (("alg3", "galaxy-s7"), ("naive", "nexus-5")):
        run_dir = made(tmp_path / "runs", who, 1, of, 2.0)
        state = LinkState(True, 8_000_000, 1, 0.01, 0.0, 0.0)
        lines = [LinkRecord.of(state, t_s=0.0, late_s=0.0, link=link) for link in of.links]
        (run_dir / FILES[LinkRecord]).write_bytes(b"".join(map(records.line, lines)))
        (run_dir / job.ENERGY_FILE).write_text(to_yaml(library.get(own)))
        figures = loaded_runs.Reader(lambda _, own=own: library.get(own)).read(run_dir).figures  # type: ignore[misc]
        (run_dir / summary.FILE).write_bytes(msgspec.json.encode(figures))
    text = page(tmp_path / "runs")
    assert "counted by several models (nexus-5, galaxy-s7) and is not compared" in words(text)
    assert not re.search(r"<td>[0-9.]+&nbsp;J</td>", text)
    assert "Energy against time" not in text
    output = tmp_path / "x.html"
    line = ["report", str(tmp_path / "runs"), "--energy-model", "galaxy-s6", "-o", str(output)]
    assert main(line) == 0
    assert "Energy against time : by the model galaxy-s6" in words(output.read_text())
    assert len(re.findall(r"<td>[0-9.]+&nbsp;J</td>", output.read_text())) == 2
    assert "by galaxy-s6; after the red line" in words(output.read_text())
