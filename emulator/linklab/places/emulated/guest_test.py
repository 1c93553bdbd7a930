"""Guests in a program that stands for QEMU: it does the jobs of its desk itself."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklab.core import scratch as scratches
from linklab.places.emulated import machine, qemu
from linklab.places.emulated.guest import EmulatedGuest
from linklab.places.guest import boot
from linklab.places.guest.ending import GuestError

SESSION = "linklab.runs.guest_session"

FAKE = """#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 8.0.0" && exit
for word; do case $word in local,id=desk,path=*) desk=${word#*path=} desk=${desk%%,*};; esac; done
job() { cd "$desk/run" || exit; (DO) >>console.log 2>&1 </dev/null; }
while read -r _; do . "$desk/job.sh"; echo ended; done
"""


class Guests:
    """Starts guests whose program is a shell script."""

    def __init__(self, directory: Path) -> None:
        self.scratch = directory / "scratch"
        self._directory = directory
        self._root = directory / "image"
        (self._root / "usr").mkdir(parents=True)
        self.scratch.mkdir()
        self._count = 0
        self.boots = 0

    def does(self, script: str) -> None:
        """Makes a QEMU whose guests do `script`."""
        qemu.find.cache_clear()
        path = self._directory / "bin" / qemu.PROGRAM
        path.parent.mkdir(exist_ok=True)
        path.write_text(FAKE.replace("DO", script))
        path.chmod(0o755)

    def memory_directory(self, _: int) -> Path:
        """Counts machines: each asks once."""
        self.boots += 1
        return self.scratch

    def start(self, *, memory: int = 64 << 20, needed: tuple[Path, ...] = ()) -> EmulatedGuest:
        self._count += 1
        run_dir = self._directory / "runs" / str(self._count)
        run_dir.mkdir(parents=True)
        (run_dir / "scenario.yaml").write_text("as run")
        return EmulatedGuest(
            self._directory / "machine-kernel",
            self._directory / "kernel",
            self._root,
            run_dir,
            seed=1,
            memory=memory,
            timeout_s=0.5,
            session=SESSION,
            needed=needed,
        )

    def run(self, *, memory: int = 64 << 20, needed: tuple[Path, ...] = ()) -> tuple[int, Path]:
        with self.start(memory=memory, needed=needed) as guest:
            assert select.select([guest], [], [], 20)[0] == [guest]
            return guest.exit_code(), guest.run_dir

    def nothing_is_left(self) -> bool:
        """Tells whether no machine's files are there."""
        return not any(self.scratch.iterdir())


@pytest.fixture
def guests(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guests]:
    made = Guests(tmp_path)
    monkeypatch.setattr(boot, "memory_directory", made.memory_directory)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made.does("cat scenario.yaml > result; echo 7 > guest-exit")
    yield made
    qemu.find.cache_clear()


def test_the_run_directory_goes_there_and_comes_back(guests: Guests) -> None:
    code, run_dir = guests.run()
    assert code == 7
    assert (run_dir / "result").read_text() == "as run"
    assert (run_dir / "guest-init.py").exists()
    assert guests.nothing_is_left()


def test_machines_are_kept_for_the_next_guest_that_fits(guests: Guests, tmp_path: Path) -> None:
    with machine.kept():
        guests.run()
        guests.run(memory=32 << 20)
        assert guests.boots == 1
        guests.run(memory=128 << 20)
        assert guests.boots == 2
        guests.run(memory=128 << 20, needed=(tmp_path,))
        assert guests.boots == 3
    assert guests.nothing_is_left()
    guests.run()
    assert guests.boots == 4


def test_a_machine_starts_every_guest_with_its_own_files(guests: Guests) -> None:
    guests.does("ls; touch mine; echo 0 > guest-exit")
    with machine.kept():
        for _ in range(2):
            _, run_dir = guests.run()
            assert "mine" not in (run_dir / "console.log").read_text()


def test_unsafe_files_do_not_come_back(guests: Guests) -> None:
    guests.does("ln -s /etc/passwd link; mkfifo pipe; echo 0 > guest-exit")
    _, run_dir = guests.run()
    assert not {"link", "pipe"} & {path.name for path in run_dir.iterdir()}
    assert "removed what is no plain file: 'link', 'pipe'" in (run_dir / "console.log").read_text()


def test_a_guest_that_hangs_ends_with_its_machine(guests: Guests) -> None:
    guests.does("echo begun > result; sleep 100")
    with machine.kept(), guests.start() as guest:
        assert not select.select([guest], [], [], 0.5)[0]
        with pytest.raises(GuestError, match=r"still running after 0 s .*console\.log$"):
            guest.exit_code()
    assert guests.nothing_is_left()


def await_content(file: Path) -> None:
    """Waits until the guest has written something there. A shell makes the file before that."""
    patience = time.monotonic() + 20
    while not (file.exists() and file.read_text()) and time.monotonic() < patience:
        time.sleep(0.01)


def test_what_a_guest_wrote_until_it_was_ended_is_there(guests: Guests) -> None:
    guests.does("echo begun > result; sleep 100")
    with guests.start() as guest:
        await_content(guest._machine.desk / "run" / "result")
    assert (guest.run_dir / "result").read_text() == "begun\n"


def test_a_machine_that_ends_says_why(guests: Guests) -> None:
    guests.does("echo 0 > guest-exit; kill $$")
    with (
        guests.start() as guest,
        pytest.raises(GuestError, match=r"^the emulated machine ended early; it said:\n  "),
    ):
        select.select([guest], [], [], 20)
        guest.exit_code()
    assert guests.nothing_is_left()


def test_a_qemu_that_refuses_its_options_is_quoted(guests: Guests, tmp_path: Path) -> None:
    program = tmp_path / "bin" / qemu.PROGRAM
    program.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo version 8.0 && exit\necho no microvm >&2; exit 1\n"
    )
    with guests.start() as guest, pytest.raises(GuestError, match="no microvm"):
        select.select([guest], [], [], 20)
        guest.exit_code()


def test_without_memory_there_is_one_line(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(GuestError, match="nowhere to keep the guest's memory of 1048768 MiB"):
        machine.Machine(qemu.Qemu(Path("/q"), (8, 0)), Path(), Path(), 1 << 40, ())


def test_a_disk_that_is_full_is_said(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    with guests.start() as guest:
        select.select([guest], [], [], 20)
        monkeypatch.setattr(shutil, "copytree", full)
        with pytest.raises(GuestError, match="cannot be brought back: .*No space left"):
            guest.exit_code()
    assert guests.nothing_is_left()


def test_machines_end_with_linklab(guests: Guests, tmp_path: Path) -> None:
    """Even if it is killed. Then `linklab clean` finds the files."""
    guests.does("echo $$ > result; sleep 100")
    (tmp_path / "runs" / "9").mkdir(parents=True)
    script = (
        "import sys, time; from pathlib import Path;"
        "from linklab.places.guest import boot;"
        f"here = Path({str(tmp_path)!r}); boot.memory_directory = lambda needed: here / 'scratch';"
        "from linklab.places.emulated.guest import EmulatedGuest;"
        "EmulatedGuest(here, here, here / 'image', here / 'runs/9', seed=1, memory=1 << 26,"
        f" timeout_s=9, session={SESSION!r}); print('started', flush=True); time.sleep(100)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        (left,) = (path for path in guests.scratch.glob("linklab-*"))
        result = left / "desk" / "run" / "result"
        await_content(result)
        mark = str(left).encode()
        assert _mentioned(mark)
        process.send_signal(signal.SIGKILL)
        process.wait()
    patience = time.monotonic() + 20
    while _mentioned(mark) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not _mentioned(mark)
    assert scratches._NAME.fullmatch(left.name)


def _mentioned(mark: bytes) -> bool:
    """Tells whether a process has a path in its command."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes():
                return True
    return False
