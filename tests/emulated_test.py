"""Guests in an emulated machine: the same files come out, to the byte, and nothing is left behind."""

import contextlib
import os
import platform
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import linklab
import psutil
import pytest
from conftest import Linklab, ScenarioFile, called, command, environment, nightly, ran, until
from linklab.core import scratch
from linklab.places import choice
from linklab.places.emulated import machine, qemu
from linklab.places.guest import image

SCENARIO = "emptcp-256kb-good-good"
RECORDS = ("client.jsonl", "links.jsonl", "events.jsonl", "queues.jsonl", "h2o-access.jsonl")

pytestmark = pytest.mark.skipif(
    choice.emulation_obstacle() is not None, reason=f"{choice.emulation_obstacle()}"
)


def _records(out: Path) -> dict[str, bytes]:
    """Returns the files of all runs below a directory."""
    return {
        f"{path.parent.name}/{name}": path.read_bytes()
        for name in RECORDS
        for path in out.rglob(name)
    }


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory, machine_kernel: Path) -> dict[str, bytes]:
    """The files of runs on this machine's own processor."""
    if platform.machine() != "x86_64":
        pytest.skip("User Mode Linux needs x86-64")
    out = tmp_path_factory.mktemp("native")
    words = ("-a", "alg3,single-wifi", "--parallel", 1, "--processor", "native", "--out", out)
    done = called(out, "compare", SCENARIO, *words)
    assert done.returncode == 0, done.stderr
    assert "emulated processor" not in done.stderr
    records = _records(out)
    assert len(records) == 2 * len(RECORDS)
    return records


@nightly
def test_runs_are_the_same_to_the_byte(
    native: dict[str, bytes], linklab: Linklab, tmp_path: Path
) -> None:
    """Two, one after the other in one machine. At the same time a worker of a campaign makes two in a
    machine of its own."""
    file = tmp_path / "small.yaml"
    file.write_text(
        f"name: small\nmatrices:\n  - {{scenarios: [{SCENARIO}], algorithms: [alg3, single-wifi]}}\n"
    )
    machines: set[int] = set()
    with subprocess.Popen(
        command("campaign", file, "--processor", "emulated", "--jobs", 1, "--out", "campaign"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as campaign:
        watching = threading.Thread(target=_watch, args=(campaign, machines))
        watching.start()
        words = ("-a", "alg3,single-wifi", "--parallel", 1, "--processor", "emulated")
        done = linklab("compare", SCENARIO, *words, "--out", "compare")
        _, said = campaign.communicate()
        watching.join()
    assert done.code == 0, done.err
    assert "emulated processor: same figures, about" in done.err.splitlines()[0]
    assert campaign.returncode == 0, said
    assert "emulated processor" in said.splitlines()[0]
    for one in ("compare", "campaign"):
        assert _records(tmp_path / one) == native, one
    assert len(machines) == 1
    until(lambda: not any(map(psutil.pid_exists, machines)))


def _watch(campaign: subprocess.Popen[str], machines: set[int]) -> None:
    """Notes the machines of a campaign's workers until it ends."""
    while campaign.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in psutil.Process(campaign.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if one.name() == qemu.PROGRAM and "-kernel" in one.cmdline():
                        machines.add(one.pid)
        time.sleep(0.1)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="User Mode Linux needs x86-64")
@pytest.mark.usefixtures("machine_kernel")
def test_a_function_of_python_chooses_its_processor_and_tells_how_far_it_is(
    scenario: ScenarioFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its processor counts more than the environment's. The other call of this program has its own.
    The guest's files grow in its machine."""
    monkeypatch.setenv(choice.PROCESSOR, "emulated")
    link = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 20 ms"
    file = scenario("slow", wifi=link, lte=link, size="1 MB")
    told: dict[str, list[linklab.Progress]] = {"native": [], "emulated": []}

    def run(processor: str) -> None:
        linklab.run(
            file,
            processor=processor,
            out=tmp_path / processor,
            progress=told[processor].append,
        )

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, told))
    for processor, words in (
        ("native", "figures repeat exactly"),
        ("emulated", "emulated processor: same figures, about 15 times slower"),
    ):
        places = [one.what for one in told[processor] if one.what.startswith("place: ")]
        assert places == [f"place: guest, clock: virtual ({words})"]
    records = _records(tmp_path / "native")
    assert len(records) == len(RECORDS)
    assert _records(tmp_path / "emulated") == records
    done = [one.done for one in told["emulated"] if one.part == "runs"]
    assert (done[0], done[-1]) == (0, 1)
    assert done == sorted(done)
    assert len({share for share in done if 0 < share < 1}) >= 3


@pytest.mark.usefixtures("machine_kernel")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_a_machine_that_boots_ends_with_linklab(how: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C removes its files, too. After a SIGKILL `linklab clean` does."""
    words = command("run", SCENARIO, "-a", "alg3", "--processor", "emulated", "--out", tmp_path)
    with subprocess.Popen(
        words, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        mark = scratch.scratch_prefix("guest").replace(str(os.getpid()), str(process.pid))
        # Until `setpriv` has become QEMU, nobody would end it.
        until(lambda: any("qemu" in one and "setpriv" not in one for one in _commands(mark)))
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert err.splitlines()[-1].startswith("linklab: interrupted;")
        assert not _left(mark)
    until(lambda: not _commands(mark))
    assert {str(path) for path in _left(mark)} <= {str(path) for path in scratch.find()}
    for path in _left(mark):
        subprocess.run(["rm", "-r", str(path)], check=True)


def _left(mark: str) -> list[Path]:
    return [
        path for place in ("/dev/shm", "/tmp", "/var/tmp") for path in Path(place).glob(f"{mark}*")
    ]


def _commands(mark: str) -> list[str]:
    """Returns the commands of processes that name a path with `mark`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in words:
            found.append(words)
    return found


@pytest.fixture
def booted(machine_kernel: Path) -> Iterator[machine.Machine]:
    """A machine that waits for a job."""
    made = machine.Machine(
        qemu.find(),
        machine_kernel,
        image.ensure("guest"),
        64 << 20,
        (),
    )
    with contextlib.closing(made):
        yield made


def test_a_machine_ends_with_its_channel(booted: machine.Machine) -> None:
    """Also if nobody is left to end it."""
    booted._stdin.close()
    assert booted._process.wait(60) == 0


def test_a_job_that_fails_is_said(booted: machine.Machine) -> None:
    booted.start("mount -t none none /nowhere\n")
    assert select.select([booted], [], [], 60)[0]
    assert "mount: /nowhere: " in booted.ended()


def test_without_qemu_a_run_says_what_to_install(tmp_path: Path) -> None:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    for name, said in (("apt-get", ""), ("qemu-system-x86_64", "QEMU emulator version 5.2.0")):
        (bin_directory / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (bin_directory / name).chmod(0o755)
    words = [*command("run", SCENARIO, "-a", "alg3"), "--processor", "emulated"]

    def said_by_run() -> str:
        done = ran(words, cwd=tmp_path, env={**environment(), "PATH": str(bin_directory)})
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        return line

    assert "is version 5.2; an emulated processor needs 7.0 or newer" in said_by_run()
    (bin_directory / "qemu-system-x86_64").unlink()
    assert "qemu-system-x86_64 is missing: apt-get install qemu-system-x86" in said_by_run()
