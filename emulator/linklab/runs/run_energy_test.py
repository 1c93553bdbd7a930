"""Tests the energy of run directories: of the lab, with and without a model, and of hardware."""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from linklab import scenario
from linklab.core.paths import REPOSITORY
from linklab.core.records import FILES, BurstRecord, ProcessRecord, line
from linklab.core.records_test import sampled
from linklab.energy import library
from linklab.runs import job, outcome, run_energy, summary
from linklab.runs.directory_energy import of_directory
from linklab.runs.job_test import JOB
from linklab.runs.run_figures import FigureError
from linklab.runs.workload_figures import of_workload
from linklab.scenario.workload import Rounds, Workload
from linklab.schema.document import ScenarioError

S7 = replace(library.get("galaxy-s7"), fitted_to=())
"""As it is written into a run directory."""
GOLDEN = REPOSITORY / "client" / "internal" / "rundir" / "testdata" / "golden"


def test_the_scenario_s_model_or_another_goes_into_a_run_directory(tmp_path: Path) -> None:
    hs_s7, other = scenario.find("hs-s7"), scenario.find("static-80-50")
    text = run_energy.model_for(hs_s7)
    assert text is not None
    (tmp_path / job.ENERGY_FILE).write_text(text)
    assert run_energy.model_of(tmp_path) == S7
    assert run_energy.model_for(other) is None
    named = run_energy.model_for(other, "galaxy-s3")
    assert named is not None
    assert library.parse(named).name == "galaxy-s3"
    assert run_energy.model_for(hs_s7, "galaxy-s3") == named


def test_a_user_s_own_model_lies_beside_the_scenario(tmp_path: Path) -> None:
    words = (library.MODELS / "galaxy-s7.yaml").read_text().replace("galaxy-s7", "mine")
    (tmp_path / "mine.yaml").write_text(words)
    text = scenario.to_yaml(replace(scenario.find("static-80-50"), energy="mine.yaml"))
    (tmp_path / "static-80-50.yaml").write_text(text)
    own = scenario.load(tmp_path / "static-80-50.yaml")
    assert own.energy == "mine.yaml"
    assert library.parse(run_energy.model_for(own) or "").name == "mine"


def test_a_scenario_names_a_model_that_is_there(tmp_path: Path) -> None:
    text = scenario.to_yaml(replace(scenario.find("static-80-50"), energy="galaxy-s77"))
    file = tmp_path / "static-80-50.yaml"
    file.write_text(text)
    line = text.splitlines().index("energy: galaxy-s77") + 1
    with pytest.raises(ScenarioError, match=rf":{line}: energy: no energy model is called"):
        scenario.load(file)
    # A guest has the run directory's copy, and perhaps no models.
    assert scenario.load(file, any_name=True).energy == "galaxy-s77"


def test_a_model_without_a_kind_of_link_is_refused(tmp_path: Path) -> None:
    half = tmp_path / "half.yaml"
    half.write_text("name: half\ndevice: x\nsource: y\nlinks: {wifi: {active: 1 mW}}\n")
    with pytest.raises(ScenarioError, match="the model half does not know LTE"):
        run_energy.model_for(scenario.find("hs-s7"), str(half))


def lab_run(directory: Path, *, energy: bool) -> Path:
    """Two seconds of Wi-Fi at 8 Mbit/s, as the lab leaves them."""
    one = scenario.find("static-80-50")
    one = replace(one, payload=replace(one.payload, size_bytes=1_900_000, sha256=None))
    directory.mkdir()
    (directory / job.SCENARIO_FILE).write_text(scenario.to_yaml(one))
    made = msgspec.structs.replace(JOB, scenario=one.name, client="curl-wifi", seed=1)
    job.write(made, directory)
    (directory / "outcome.json").write_bytes(
        b'{"exit_code":0,"elapsed_ns":2000000000,'
        b'"received_bytes":{"wifi":2000000,"lte":0},"output_bytes":1900000}'
    )
    samples = [
        one
        for t_s in (0.5, 1.0, 1.5, 2.0)
        for one in (
            sampled(t_s, "wifi", round(1e6 * t_s)),
            sampled(t_s, "wifi", 0, "up"),
            sampled(t_s, "lte", 0),
        )
    ]
    (directory / "queues.jsonl").write_bytes(b"".join(map(line, samples)))
    (directory / "links.jsonl").write_bytes(b"")
    if energy:
        (directory / job.ENERGY_FILE).write_text(run_energy.model_for(one, "galaxy-s7") or "")
    return directory


WIFI_J = 2 * (0.7 + 0.463) + 16 * 0.01215
"""Two seconds and 16 Mbit by the S7."""


def test_the_summary_has_the_energy(tmp_path: Path) -> None:
    run_dir = lab_run(tmp_path / "run", energy=True)
    written = summary.write(run_dir)
    assert summary.read(run_dir) == written
    assert written.energy is not None
    assert written.energy.model == "galaxy-s7"
    assert written.energy.main_j == pytest.approx(WIFI_J)
    assert written.energy.tail_j == pytest.approx(4 * 0.447)
    assert written.energy.links["lte"].joules == 0
    account = of_directory(run_dir)
    assert account.figures == written.energy
    assert account.power[0].power_w == pytest.approx(WIFI_J / 2)
    assert of_directory(run_dir, library.get("galaxy-s3")).figures.model == "galaxy-s3"


def test_a_file_is_one_burst_and_a_workload_has_those_that_were_recorded(tmp_path: Path) -> None:
    run_dir = lab_run(tmp_path / "run", energy=True)
    energy = summary.write(run_dir).energy
    assert energy is not None
    assert energy.bursts_j == pytest.approx(WIFI_J)
    assert energy.bursts_s == pytest.approx(2.0)

    scenario_file = run_dir / job.SCENARIO_FILE
    one = scenario.load(scenario_file, any_name=True)
    talks = replace(one, workload=Workload(rounds=Rounds(100_000, 5_000)))
    scenario_file.write_text(scenario.to_yaml(talks))
    done = {"workload": "rounds", "outcome": "complete", "bytes": 1_900_000}
    figures = {key: 0.1 for key, one in of_workload("rounds").items() if not one.by_lab}
    done |= {"duration_ns": 2_000_000_000, "figures": figures}
    (run_dir / "workload.json").write_bytes(msgspec.json.encode(done))
    energy = summary.write(run_dir).energy
    assert energy is not None
    assert energy.bursts_j is None, "an earlier linklab recorded none"
    with (run_dir / FILES[BurstRecord]).open("wb") as file:
        file.write(line(BurstRecord(t_s=0.2, length_s=0.1, packets=20)))
        file.write(line(BurstRecord(t_s=1.8, length_s=0.7, packets=20)))
    energy = summary.write(run_dir).energy
    assert energy is not None
    assert energy.bursts_j == pytest.approx(0.3 * (0.7 + 0.463) + 16 * 0.01215, rel=1e-5)


def test_a_program_that_brought_no_file_has_joules_by_what_it_received(tmp_path: Path) -> None:
    run_dir = lab_run(tmp_path / "run", energy=True)
    job.write(msgspec.structs.replace(job.read(run_dir), client=None, command=["x"]), run_dir)
    ended = outcome.read(run_dir)
    received = {"wifi": 500_000, "lte": 0}
    ended = msgspec.structs.replace(ended, output_bytes=None, received_bytes=received)
    outcome.write(ended, run_dir)
    energy = summary.write(run_dir).energy
    assert energy is not None
    assert energy.joules_per_byte == pytest.approx(energy.joules / 500_000)


def test_without_a_model_there_is_no_energy(tmp_path: Path) -> None:
    run_dir = lab_run(tmp_path / "run", energy=False)
    assert summary.write(run_dir).energy is None
    with pytest.raises(FigureError, match="names no energy model; needed: --energy-model"):
        of_directory(run_dir)
    assert of_directory(run_dir, S7).figures.main_j == pytest.approx(WIFI_J)


def test_the_processor_s_share_is_known_of_the_real_clock_alone(tmp_path: Path) -> None:
    run_dir = lab_run(tmp_path / "run", energy=False)
    model = replace(S7, processor_mw=1000.0)
    assert of_directory(run_dir, model).figures.processor_j is None
    with (run_dir / FILES[ProcessRecord]).open("wb") as file:
        for t_s, cpu_s in ((0.0, 0.1), (2.0, 0.9)):
            for who in ("client", "server"):
                file.write(line(ProcessRecord(t_s=t_s, process=who, cpu_s=cpu_s, rss_bytes=1)))
    figures = of_directory(run_dir, model).figures
    assert figures.processor_j == pytest.approx(0.8)
    assert figures.main_j == pytest.approx(WIFI_J + 0.8)


def hardware_run(directory: Path, device: str = "wlan0", **more: int) -> Path:
    """A second over a link called after its device, as multilink leaves it on a phone."""
    directory.mkdir()
    (directory / "client.json").write_bytes(
        msgspec.json.encode(
            {
                "algorithm": "alg3",
                "outcome": "complete",
                "size_bytes": 1_000_000,
                "download_ns": 1_000_000_000,
                "links": {device: {"device": device, "bytes": 1_000_000}},
                **more,
            }
        )
    )
    samples = [
        {"t_ns": n * 100_000_000, "event": "sample", "link": device, "received_bytes": n * 200_000}
        for n in range(6)
    ]
    last = {"t_ns": 990_000_000, "event": "sample", "link": device, "received_bytes": 1_000_000}
    lines = [msgspec.json.encode(one) + b"\n" for one in (*samples, last)]
    (directory / "client.jsonl").write_bytes(b"".join(lines))
    return directory


def test_a_run_on_hardware_has_its_energy_too(tmp_path: Path) -> None:
    figures = of_directory(hardware_run(tmp_path / "run"), S7).figures
    assert figures.links["wlan0"].active_s == pytest.approx(0.5)
    assert figures.main_j == pytest.approx(0.7 + 0.5 * 0.463 + 8 * 0.01215 + 0.5 * 0.447)
    assert figures.tail_j == pytest.approx(3.5 * 0.447)


def test_what_an_earlier_call_brought_is_not_paid_by_this_one(tmp_path: Path) -> None:
    whole = of_directory(hardware_run(tmp_path / "whole"), S7).figures
    resumed = hardware_run(tmp_path / "rest", size_bytes=4_000_000, resumed_bytes=3_000_000)
    assert of_directory(resumed, S7).figures == whole
    nothing = hardware_run(tmp_path / "nothing", resumed_bytes=1_000_000)
    with pytest.raises(FigureError, match="0 bytes in 1 s are no download"):
        of_directory(nothing, S7)


def test_what_a_client_itself_writes_is_read(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run")
    figures = of_directory(tmp_path / "run", S7).figures
    assert figures.joules > 0


def test_a_device_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FigureError, match="'usb0': is it Wi-Fi, LTE, "):
        of_directory(hardware_run(tmp_path / "run", "usb0"), S7)
