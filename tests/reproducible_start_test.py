"""Tests that what a guest does before a run does not affect it, because machines boot differently."""

import shutil
import tempfile
from pathlib import Path

import pytest
from conftest import REPOSITORY, TEST_ALL, Linklab, ScenarioFile, json_of, part_of
from linklab.commands import cli
from linklab.places.guest import boot

RECORDS = ("client.jsonl", "links.jsonl", "events.jsonl", "queues.jsonl")

OTHER_BOOTS = {
    "looks at the clock": "for i in 1 2 3 4 5 6 7 8 9; do date; cat /proc/uptime; done",
    "random numbers": "head -c 16 /dev/urandom; head -c 3 /dev/urandom",
    "files that are not there": "for i in $(seq 100); do [ -e /nowhere/$i ] || true; done",
    "a pause": "sleep 0.31",
    "a second more": "sleep 1.0037",
}


SCENARIO = """\
name: reproducible-start
payload: {size: 10 MB}
links:
  wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 15 ms,
    radio: {standard: n, access_points: [{name: ap1, signal: -60 dBm}]}}
  lte: {down: 60 Mbit/s, up: 10 Mbit/s, rtt: 50 ms, carriers: {count: 3}}
"""


def run(scenario: Path, before: str = ":") -> dict[str, bytes]:
    """Returns a run's files from a guest that executed `before` as early as possible."""
    own = boot._guest_init

    def otherwise(session: str, modules: Path | None) -> str:
        do = f"import subprocess\nsubprocess.run(['sh', '-c', {before!r}], check=True)\n"
        script, mounted, rest = own(session, modules).partition("\nmount_all()\n")
        assert rest
        return f"{script}{mounted}{do}{rest}"

    to = Path(tempfile.mkdtemp(dir=scenario.parent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boot, "_guest_init", otherwise)
        assert cli.main(["run", str(scenario), "-a", "adaptive", "--out", str(to)]) == 0
    (directory,) = to.iterdir()
    return {name: (directory / name).read_bytes() for name in RECORDS}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a scenario with many random numbers and time-dependent events."""
    file = tmp_path_factory.mktemp("start") / "reproducible-start.yaml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture(scope="module")
def plain(file: Path) -> dict[str, bytes]:
    """Returns the files of a run after a boot as it is."""
    return run(file)


@pytest.mark.parametrize(
    "before", OTHER_BOOTS.values() if TEST_ALL else ["\n".join(OTHER_BOOTS.values())]
)
def test_a_boot_that_goes_otherwise_changes_nothing(
    before: str, file: Path, plain: dict[str, bytes]
) -> None:
    """`make test` does all of it in one boot."""
    other = run(file, before)
    assert [name for name in RECORDS if other[name] != plain[name]] == []


def test_how_programs_reach_the_kernel_changes_nothing(
    file: Path, plain: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the host forbids seccomp filters, ptrace is used. The vDSO has the clock in both cases."""
    for how in ("on", "off"):  # `on` has no fallback. Without filters the guest would not boot.
        monkeypatch.setattr(boot, "catching", lambda how=how: how)
        other = run(file)
        assert [name for name in RECORDS if other[name] != plain[name]] == [], how


def test_where_the_client_lies_changes_nothing(
    linklab: Linklab, scenario: ScenarioFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the length of its path. A program's first memory is laid out after its arguments."""
    file, came = scenario("short"), {}
    for letters in part_of((39, 47, 55, 63), 2):
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            client = Path(directory, "m" * (letters - len(directory) - 1))
            shutil.copy(REPOSITORY / "build" / "multilink", client)
            monkeypatch.setenv("LINKLAB_MULTILINK", str(client))
            report = linklab("run", file, "-a", "alg3", "--json").json
        came[letters] = Path(report["run_dir"], "client.jsonl").read_bytes()
    assert [letters for letters in came if came[letters] != came[39]] == []


def record_with(runs: Path, setting: str) -> bytes:
    """Returns the client's record of a download with a setting of Go's runtime."""
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        client = Path(directory, "multilink")
        shutil.copy(REPOSITORY / "build" / "multilink", Path(directory, "itself"))
        client.write_text(f'#!/bin/sh\nGODEBUG="$GODEBUG,{setting}" exec {directory}/itself "$@"\n')
        client.chmod(0o755)
        patch.setenv("LINKLAB_MULTILINK", str(client))
        file = runs / "reproducible-start.yaml"
        file.write_text(SCENARIO.replace("10 MB", "60 MB"))
        run_dir: str = json_of(runs, "run", file, "-a", "adaptive")["run_dir"]
        return Path(run_dir, "client.jsonl").read_bytes()


@pytest.fixture(scope="module")
def usual_record(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The client's record with a setting that is Go's default."""
    return record_with(tmp_path_factory.mktemp("usual"), "madvdontneed=1")


PROCESSOR = ("adx", "avx", "avx2", "bmi2", "erms")


@pytest.mark.parametrize("lacks", [(one,) for one in PROCESSOR] if TEST_ALL else [PROCESSOR])
def test_what_the_client_s_processor_can_do_changes_nothing(
    usual_record: bytes, tmp_path: Path, lacks: tuple[str, ...]
) -> None:
    """Nor does the amount of its allocations, on which garbage collection would depend, nor when
    Go's scheduler looks at the clock. Without BMI2 that is at other times. `make test` takes away all
    at once.
    """
    settings = ",".join(f"cpu.{one}=off" for one in lacks)
    assert record_with(tmp_path, settings) == usual_record


LOOKS = """
import os, random, sys, time, urllib.request
most, draw = int(sys.argv[1]), random.Random(sys.argv[1])
with urllib.request.urlopen(os.environ["LINKLAB_URL"]) as answer:
    while answer.read(100_000):
        for _ in range(draw.randrange(most)):
            time.monotonic()
            os.path.exists("/nowhere")
"""


def test_how_often_a_program_looks_at_the_clock_changes_no_packet(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Nor how often a system call fails."""
    file, came = scenario("looks", size="4 MB"), []
    for most in part_of(("001", "020", "060"), 2):
        program = ("python3", "-c", LOOKS, most)
        report = linklab("exec", file, "--pcap", "wifi", "--json", "--", *program).json
        came.append(Path(report["run_dir"], "wifi.pcap").read_bytes())
    assert len(came[0]) > 4_000_000
    assert len({*came}) == 1


WAITS = """
import os, time
begin = time.monotonic()
while time.monotonic() < begin + 0.01:
    pass
spun = time.monotonic()
for _ in range(20_000):
    os.path.exists("/nowhere")
print(f"{spun - begin:.4f} {time.monotonic() - spun:.2f}")
"""


def test_a_program_that_waits_busily_gets_on(linklab: Linklab, scenario: ScenarioFile) -> None:
    """It looks at the clock, or calls in vain, more often than is free between two waits."""
    report = linklab("exec", scenario("spins"), "--json", "--", "python3", "-c", WAITS).json
    assert Path(report["run_dir"], "client.out").read_text() == "0.0100 0.02\n"
