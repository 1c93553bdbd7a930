"""Tests failures: one clear error, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Linklab, ScenarioFile, command, environment, finished, lines, queue, until
from linklab.places.guest import kernel


def processes_in(directory: Path) -> list[int]:
    """Returns this machine's processes whose working directory is below `directory`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                working = (entry / "cwd").readlink()
            except OSError:
                continue
            if working.is_relative_to(directory):
                found.append(int(entry.name))
    return found


def scratch_directories(process: subprocess.Popen[str]) -> set[Path]:
    """Returns the scratch directories of a linklab process' guests, wherever they are."""
    places = {"/dev/shm", "/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp")}
    return {path for place in places for path in Path(place).glob(f"linklab-guest-{process.pid}-*")}


def start_long_run(tmp_path: Path, file: Path) -> subprocess.Popen[str]:
    """Starts a run that takes minutes, and waits until its guest's client downloads."""
    process = subprocess.Popen(
        command("run", file, "-a", "alg3"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: any(tmp_path.glob("runs/*/client.jsonl")), "the client never started")
    assert processes_in(tmp_path / "runs")
    return process


def files_in(*directories: Path) -> set[Path]:
    return {path for directory in directories for path in directory.rglob("*")}


def processes_of(directory: Path) -> list[int]:
    """Returns processes whose environment names `directory`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.fsencode(directory) in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


KILLED = (
    ("run", "{file}", "-a", "alg3"),
    ("compare", "{file}", "--runs", "2"),
    ("exec", "{file}", "--", "sleep", "1000"),
    ("live", "{file}", "--place", "guest", "--listen", "127.0.0.1:0"),
)


def test_what_killed_commands_leave_is_cleaned_and_no_more(
    request: pytest.FixtureRequest, tmp_path: Path, long: Path
) -> None:
    """A lab that lives beside them keeps all of its own, and a user what only looks like a lab's."""
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    for directory in (cache, temporary):
        directory.mkdir()
    for name in ("image", "kernel"):
        (cache / name).symlink_to(kernel.ensure().parents[1] / name)
    own = {**environment(), "LINKLAB_CACHE": str(cache), "TMPDIR": str(temporary)}

    def begun(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command(*(word.format(file=long) for word in words)),
            cwd=tmp_path,
            env=own,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        # Whatever fails, no lab outlives its test.
        request.addfinalizer(process.kill)
        return process

    def runs() -> int:
        return len(list(tmp_path.glob("runs/**/queues.jsonl")))

    def running(*words: str) -> subprocess.Popen[bytes]:
        goal = runs() + 1
        process = begun(*words)
        until(lambda: runs() >= goal, f"{words} never began")
        return process

    notes = temporary / "linklab-guest-notes"
    notes.mkdir()
    living = running("live", "{file}", "--place", "guest", "--listen", "127.0.0.1:0")
    kept = files_in(temporary, cache / "live")
    processes = set(processes_of(temporary))
    for words in KILLED:
        before = files_in(temporary, cache / "live")
        killed = running(*words)
        killed.kill()
        killed.wait()
        until(lambda: set(processes_of(temporary)) <= processes, f"processes outlived {words}")
        assert files_in(temporary, cache / "live") > before, words
    done = subprocess.run(command("clean"), env=own, capture_output=True, text=True, check=True)
    assert f"removed {temporary}" in done.stdout
    assert "could not" not in done.stdout
    assert files_in(temporary, cache / "live") == kept
    assert not list(cache.rglob("*.part"))
    assert living.poll() is None
    living.send_signal(signal.SIGINT)
    assert living.wait(timeout=120) == 130
    assert files_in(temporary, cache / "live") == {notes}


@pytest.fixture
def long(scenario: ScenarioFile) -> Path:
    """Makes a scenario whose download takes minutes."""
    return scenario("long", size="1 GB")


def test_ctrl_c_ends_everything(tmp_path: Path, long: Path) -> None:
    process = start_long_run(tmp_path, long)
    assert scratch_directories(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    until(lambda: not processes_in(tmp_path / "runs"), "processes outlived Ctrl-C")
    assert not scratch_directories(process)


def test_a_hung_guest_is_ended_with_its_console(tmp_path: Path, scenario: ScenarioFile) -> None:
    """A loop that never waits stops virtual time. linklab says so before the limit. Both are shorter
    here than a user's."""
    spin = "while :; do :; done"
    program = (
        "import sys; from linklab.commands import cli; from linklab.runs import runner;"
        "from linklab.places.guest import standstill; standstill.PATIENCE_S = 1.0;"
        "runner.MIN_WATCHDOG_S = 8.0; runner.MIN_LIMIT_S = 0.0; sys.exit(cli.main())"
    )
    words = ("exec", scenario("hung"), "--timeout", "8", "--", "sh", "-c", spin)
    done = finished(tmp_path, [sys.executable, "-c", program, *words])
    assert done.returncode == 1
    assert "still running after 8 s of wall-clock time" in done.stderr
    said = "a program of the guest computes for over 1 s without a system call"
    assert done.stderr.count(said) == 2  # When it was seen, and with the reason of the end.
    assert "--timeout allows more" not in done.stderr
    assert "console.log" in done.stderr


HANGS = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("connected", file=sys.stderr)
print("waiting for", sys.argv[1], file=sys.stderr, flush=True)
if sys.argv[1] == "poll":
    while True:
        time.sleep(1)
else:
    threading.Lock().acquire() and threading.Event().wait()
"""


@pytest.mark.parametrize(("how", "limit", "limit_s"), [("poll", "2min", 120), ("lock", None, None)])
def test_a_program_that_hangs_is_ended_by_the_lab_s_clock_with_its_last_words(
    linklab: Linklab,
    scenario: ScenarioFile,
    tmp_path: Path,
    how: str,
    limit: str | None,
    limit_s: float | None,
) -> None:
    """Without --timeout it may take ten times the slowest link's download, and a minute."""
    (tmp_path / "hangs.py").write_text(HANGS)
    limits = () if limit is None else ("--timeout", limit)
    file = scenario("hung", size="10 MB", lte="down: 40 Mbit/s, up: 10 Mbit/s, rtt: 30 ms")
    done = linklab(
        "exec", file, "--json", *limits, "--", sys.executable, tmp_path / "hangs.py", how
    )
    assert done.code == 1
    run_dir = done.run_dir
    first, *words = done.json["error"].splitlines()
    if limit_s is None:
        limit_s = float(first.split()[6])
        assert limit_s == pytest.approx(60 + 10 * 80e6 / (40e6 * 1400 / 1514), abs=3)
    assert first == (
        f"the client was still running after {limit_s:g} s of the lab's time and was ended "
        f"(--timeout allows more); the client's last words ({run_dir}/client.err):"
    )
    assert words == ["  connected", f"  waiting for {how}"]
    *_, last = (json.loads(line) for line in (run_dir / "queues.jsonl").read_text().splitlines())
    assert last["t_s"] == pytest.approx(limit_s + 2, abs=0.01), "it ignores SIGINT for 2 s"
    for command_ in ("report", "plot"):
        more = ("-o", tmp_path / "page.html") if command_ == "report" else ()
        shown = linklab(command_, run_dir, *more)
        assert "outcome.json" not in shown.err
        assert f"still running after {limit_s:g} s" in shown.err


def test_a_crash_at_once_draws_nothing(linklab: Linklab, scenario: ScenarioFile) -> None:
    done = linklab("exec", scenario("crash"), "--json", "--", "sh", "-c", "echo boom >&2; exit 3")
    assert done.code == 1
    plot = linklab("plot", done.json["run_dir"])
    assert (plot.code, plot.out) == (2, "")
    assert "no link has carried anything: the client ended with 3: boom" in plot.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes directories read-only to all")
@pytest.mark.parametrize(
    ("place", "remedy"),
    [("cache", "LINKLAB_CACHE names"), ("runs", "--out names")],
)
def test_a_place_that_is_read_only_is_said_with_what_to_do(
    tmp_path: Path, scenario: ScenarioFile, place: str, remedy: str
) -> None:
    for name in ("cache", "runs"):
        (tmp_path / name).mkdir()
    for name in ("image", "kernel"):
        (tmp_path / "cache" / name).symlink_to(kernel.ensure().parents[1] / name)
    mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 99; exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            mounts,
            tmp_path / place,
            *command(
                "run", scenario("small", size="1 MB"), "-a", "alg3", "--out", tmp_path / "runs"
            ),
        ],
        env={**environment(), "LINKLAB_CACHE": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("linklab: ")]
    assert (done.returncode, remedy in said) == (2, True), said


FLOOD = """
import socket, sys
packet, flood = bytes(1472), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(370_000):
    flood.sendto(packet, (sys.argv[1], 9))
"""


def test_a_full_queue_of_any_size_fits_into_the_guest(
    linklab: Linklab, tmp_path: Path, scenario: ScenarioFile
) -> None:
    """This one takes more than a guest has otherwise."""
    (tmp_path / "flood.py").write_text(FLOOD)
    slow = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 60 ms, queue: 500 MB"
    file = scenario("deep", size="1 MB", wifi=slow)
    done = linklab("exec", file, "--", "python3", tmp_path / "flood.py", "{address}")
    assert (done.code, "linklab: " in done.err) == (0, False)
    (run_dir,) = (tmp_path / "runs").iterdir()
    assert max(one["queue_bytes"] for one in queue(run_dir, "wifi", "up")) > 490_000_000


HOG = """
import mmap
kept, how = [], mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
while True: kept.append(mmap.mmap(-1, 1 << 20, how))
"""


@pytest.mark.parametrize("who", ["client", "server", "nobody"])
def test_a_guest_out_of_memory_says_so(
    linklab: Linklab, tmp_path: Path, scenario: ScenarioFile, who: str
) -> None:
    """Whichever program takes the memory, no program of the lab is ended silently."""
    (tmp_path / "hog.py").write_text(HOG)
    hog = f"python3 {tmp_path / 'hog.py'}"
    words: dict[str, tuple[object, ...]] = {
        "client": ("--", *hog.split()),
        "server": ("--server", hog, "--", "sleep", "60"),
        "nobody": ("--", "dd", "if=/dev/zero", "of=/tmp/full", "bs=1M", "count=2000"),
    }
    done = linklab("exec", scenario("full", size="1 MB"), *words[who])
    assert done.code == 1
    (said,) = [line for line in done.err.splitlines() if line.startswith("linklab: ")]
    assert "the guest ran out of memory (768 MiB)" in said
    until(lambda: not processes_in(tmp_path / "runs"), "processes outlived the guest")


GONE = (
    "events:\n  - {at: 1 s, link: wifi, carrier: down}\n  - {at: 1 s, link: lte, carrier: down}\n"
)


@pytest.mark.parametrize(
    ("who", "words", "after_s"),
    [
        # Keep-alives, which curl asks for, take ten minutes.
        (
            "curl-wifi",
            "the client ended with 56: curl: (56) Recv failure: Connection timed out",
            617,
        ),
        # One minute more without any subflow (net.mptcp.close_timeout).
        (
            "mptcp",
            "the client ended with 56: curl: (56) Recv failure: Transport endpoint is not connected",
            678,
        ),
    ],
)
def test_who_gives_up_without_links_says_so(
    linklab: Linklab, scenario: ScenarioFile, who: str, words: str, after_s: float
) -> None:
    done = linklab("run", scenario("gone", size="50 MB", more=GONE), "-a", who, "--json")
    assert done.code == 1
    assert done.json["error"] == words
    outcome = json.loads(Path(done.json["run_dir"], "outcome.json").read_text())
    assert outcome["elapsed_ns"] / 1e9 == pytest.approx(after_s, abs=1)


def test_who_tries_for_ever_is_ended(linklab: Linklab, scenario: ScenarioFile) -> None:
    """aria2 does, with the time-outs that the lab gives it."""
    done = linklab("run", scenario("gone", size="50 MB", more=GONE), "-a", "aria2-2", "--json")
    said = "no link has carried anything for 1000 s: the client waits for ever"
    assert (done.code, done.json["error"]) == (1, said)


def test_who_never_gives_up_is_ended(tmp_path: Path, scenario: ScenarioFile, nginx: str) -> None:
    """The server stops the program just before the links go."""
    stop = "until pidof curl; do sleep 0.1; done; sleep 0.8; kill -STOP $(pidof curl)"
    process = subprocess.Popen(
        command(
            *("run", scenario("gone", size="50 MB", more=GONE), "-a", "mptcp", "--json"),
            *("--server", f"sh -c '({stop}) & exec {nginx}'"),
        ),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    done = json.loads(out)
    words = "no link has carried anything for 1000 s: the client waits for ever"
    assert (done["error"], done["figures"]) == (words, None)
    run_dir = Path(done["run_dir"])
    assert not (run_dir / "outcome.json").exists()
    totals: dict[float, int] = {}
    for sample in lines(run_dir / "queues.jsonl"):
        totals[sample["t_s"]] = totals.get(sample["t_s"], 0) + sample["sent_bytes"]
    carried_s = min(t_s for t_s, total in totals.items() if total == max(totals.values()))
    *_, noticed_s, ended_s = sorted(totals)
    assert noticed_s - carried_s == pytest.approx(1000.5, abs=1e-3)  # Samples are 0.5 s apart.
    # A client that has not ended by then is killed.
    assert ended_s - noticed_s == pytest.approx(2, abs=1e-3)
    until(lambda: not processes_in(tmp_path / "runs"), "processes outlived the runs")
    assert not scratch_directories(process)


def test_a_server_that_dies_is_named(linklab: Linklab, scenario: ScenarioFile) -> None:
    script = "sleep 0.2; kill -9 $(pidof h2o); sleep 60"
    done = linklab("exec", scenario("dies"), "--", "sh", "-c", script)
    assert done.code == 1
    assert "H2O ended with -9" in done.err
