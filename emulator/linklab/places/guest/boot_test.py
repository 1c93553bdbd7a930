import ast
import os
import resource
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from linklab.places.guest import boot, confinement, system_calls
from linklab.places.guest.boot import Guest
from linklab.places.guest.confinement import Fence
from linklab.places.guest.ending import GuestError

SESSION = "linklab.runs.guest_session"


@pytest.fixture
def scratch(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where guests keep their memory; the cache of the test's own holds the cores' locks."""
    directory = tmp_path / "scratch"
    directory.mkdir()
    monkeypatch.setattr(boot, "memory_directory", lambda needed: directory)
    return directory


@pytest.fixture
def guests(tmp_path: Path, scratch: Path) -> Iterator["Guests"]:
    with ExitStack() as stack:
        yield Guests(tmp_path, stack)


class Guests:
    """Boots shell scripts in place of kernels."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._root = directory / "image"
        (self._root / "usr").mkdir(parents=True)
        self._stack = stack

    def boot(self, name: str, script: str, *, seed: int = 1) -> Guest:
        kernel = self._directory / "kernel"
        kernel.write_text(f"#!/bin/sh\n{script}\n")
        kernel.chmod(0o755)
        run_dir = self._directory / name
        run_dir.mkdir()
        guest = Guest(
            kernel,
            self._root,
            run_dir,
            clock="virtual",
            seed=seed,
            memory=64 << 20,
            timeout_s=30,
            session=SESSION,
        )
        self._stack.callback(guest.close)
        return guest

    def ended(self, name: str, script: str, *, seed: int = 1) -> Guest:
        guest = self.boot(name, script, seed=seed)
        assert select.select([guest], [], [], 20)[0] == [guest]
        return guest


def test_the_command_line_differs_with_seed_clock_and_memory_alone(
    guests: Guests, tmp_path: Path
) -> None:
    """It seeds the guest's randomness: a directory's name in it would change every figure."""
    note = 'printf \'%s\\n\' "$0" "$@" > argv; echo 0 > guest-exit'

    def argv(name: str, seed: int) -> list[str]:
        guest = guests.ended(name, note, seed=seed)
        assert guest.exit_code() == 0
        return (guest.run_dir / "argv").read_text().splitlines()[1:]

    first = argv("one", 1)
    assert argv("another-and-longer", 1) == first
    assert str(tmp_path) not in " ".join(first)
    other = argv("one-more", 2)
    assert [a for a, b in zip(first, other, strict=True) if a != b] == ["linklab.seed=1"]

    virtual, real = (boot.kernel_arguments(clock, 1, 64 << 20) for clock in ("virtual", "real"))
    assert first == "\n".join(virtual).splitlines()
    travel = [word for word in virtual if word.startswith("time-travel")]
    assert [word for word in virtual if word not in travel] == real
    assert travel == ["time-travel=inf-cpu", "time-travel-start=1767225600000000000"]
    assert "mem=64M" in virtual
    assert "ro" in virtual
    assert "rw" not in virtual


def test_without_a_fence_programs_do_not_get_at_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words in (("namespaces", "auto"), ("landlock", "auto"), ("none", "off")):
        monkeypatch.setattr(confinement, "fence", lambda name=name: Fence(name, "as it is"))
        assert f"seccomp={words}" in boot.kernel_arguments("virtual", 1, 64 << 20)
    monkeypatch.setattr(system_calls, "allows_ptrace", lambda: False)
    with pytest.raises(GuestError, match="^a guest that is not confined needs ptrace"):
        boot.kernel_arguments("virtual", 1, 64 << 20)


def test_the_payload_fits_into_memory() -> None:
    assert boot.memory_bytes(10_000_000_000) - boot.memory_bytes(0) >= 10_000_000_000
    assert boot.memory_bytes(0) >= 256 << 20
    for size in (20_000_000, 100_000_000, 300_000_000, 2_000_000_000):
        room = boot.memory_bytes(size, uploaded=True)
        assert room >= boot.memory_bytes(size)
        assert room >= 3 * size + (256 << 20)


def test_packets_that_wait_fit_into_memory() -> None:
    held = 1_000_000_000
    assert boot.memory_bytes(0, held_bytes=held) >= boot.memory_bytes(0) + 2 * held - (400 << 20)
    assert boot.memory_bytes(7, held_bytes=held) == boot.memory_bytes(0, held_bytes=held) + 7

    assert boot.memory_bytes(7, held_bytes=150_000_000) == boot.memory_bytes(7)


def test_a_guest_out_of_memory_says_so(guests: Guests) -> None:
    panic = "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"
    guest = guests.ended("run", f"echo {panic!r}; seq 10000; echo 0 > guest-exit")
    with pytest.raises(GuestError, match=r"ran out of memory \(64 MiB\).*console\.log$"):
        guest.exit_code()


def test_a_guest_finds_its_script_and_command_in_its_working_directory(guests: Guests) -> None:
    guest = guests.ended("run", "pwd > where; cat guest-init.py; echo 5 > guest-exit")
    assert guest.exit_code() == 5
    assert (guest.run_dir / "where").read_text() == f"{guest.run_dir}\n"
    console = (guest.run_dir / "console.log").read_text()
    assert SESSION in console


def test_the_guest_has_the_image_as_its_root(guests: Guests, tmp_path: Path) -> None:
    guest = guests.ended("run", "ls /proc/self/fd/9; echo 0 > guest-exit")
    assert guest.exit_code() == 0
    assert (guest.run_dir / "console.log").read_text() == "usr\n"
    assert "rootflags=/proc/self/fd/9" in boot.kernel_arguments("virtual", 1, 64 << 20)


@pytest.mark.skipif(confinement.fence().name != "namespaces", reason="no namespaces here")
def test_nothing_can_be_written_through_the_root_s_descriptor(
    guests: Guests, tmp_path: Path
) -> None:
    """It is opened inside the fence: one from outside would lead to the host's mounts."""
    tries = "touch /proc/self/fd/9/mine /proc/self/fd/9/../mine; echo 0 > guest-exit"
    assert guests.ended("run", tries).exit_code() == 0
    assert not (tmp_path / "mine").exists()
    assert not (tmp_path / "image" / "mine").exists()


def test_the_guest_runs_this_package_as_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1007)
    monkeypatch.setattr(os, "getgid", lambda: 1008)
    monkeypatch.setattr(boot, "PYTHON_PATH", Path("/tmp/a 'place' \udcff"))
    script = boot._guest_init(SESSION, Path("/cache/bundle/abc"))
    *_, name, execute = script.strip().splitlines()
    assert name == "name_user(1007, 1008)"
    (arguments,) = ast.parse(execute).body[0].value.args  # type: ignore[attr-defined]
    assert execute.isascii()
    package = "/tmp/a 'place' \udcff/linklab"
    assert ast.literal_eval(arguments.value) == (package, SESSION, "/cache/bundle/abc")
    compile(script, "guest-init.py", "exec")


def test_it_is_pinned_to_one_core_and_gives_it_back(guests: Guests, scratch: Path) -> None:
    guest = guests.ended(
        "run", "taskset --cpu-list --pid $$ | sed 's/.*: //'; echo $HOME; echo $TMPDIR"
    )
    core, home, tmp = (guest.run_dir / "console.log").read_text().split()
    assert core == str(min(os.sched_getaffinity(0)))
    assert Path(home).parent == scratch
    assert Path(home).name.startswith(f"linklab-guest-{os.getpid()}-")
    assert tmp == home
    guest.close()
    assert list(scratch.iterdir()) == []
    again, lock = boot.reserve_core()
    assert (again, lock is None) == (int(core), False)
    assert lock is not None
    lock.close()
    guest.close()  # A second time is no error.


def test_a_guest_that_does_not_finish_shows_the_end_of_its_console(guests: Guests) -> None:
    panic = "for n in 1 2 3 4 5; do echo line $n; done; echo Kernel panic; exit 0"
    with pytest.raises(GuestError) as error:
        guests.ended("run", panic).exit_code()
    said = str(error.value)
    assert "ended without finishing" in said
    assert "console.log" in said
    assert said.endswith("line 2\n  line 3\n  line 4\n  line 5\n  Kernel panic")
    with pytest.raises(GuestError, match=r"\(nothing\)"):
        guests.ended("silent", "exit 0").exit_code()
    with pytest.raises(GuestError, match=r"\(nothing\)"):
        guests.ended("removed", "rm console.log").exit_code()
    with pytest.raises(GuestError, match="without finishing"):
        guests.ended("half", "printf '' > guest-exit").exit_code()


@pytest.mark.parametrize(("free", "says"), [(4096, True), (1 << 30, False)])
def test_a_full_disk_is_said(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, *, free: int, says: bool
) -> None:
    guest = guests.ended("run", "exit 0")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(GuestError) as error:
        guest.exit_code()
    assert ("the disk of its run directory is full" in str(error.value)) is says


def test_a_guest_that_hangs_is_ended_and_leaves_nothing(guests: Guests, scratch: Path) -> None:
    guest = guests.boot("run", "echo $$ > pid; exec sleep 60")
    with guest:
        with pytest.raises(GuestError, match=r"still running after 30 s of"):
            guest.exit_code()
        pid = guest._process.pid
    assert not Path(f"/proc/{pid}").exists()
    assert list(scratch.iterdir()) == []


def test_what_a_guest_left_is_plain_before_it_is_read(guests: Guests, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("7")
    guest = guests.ended("run", f"ln -s {victim} guest-exit; mkfifo error; echo said")
    with pytest.raises(GuestError, match=r"without finishing"):
        guest.exit_code()
    console = (guest.run_dir / "console.log").read_text()
    assert console == "said\nlinklab: removed what is no plain file: 'error', 'guest-exit'\n"
    assert not (guest.run_dir / "error").exists()
    assert victim.read_text() == "7"


def test_a_guest_s_console_is_not_written_through_a_link(guests: Guests, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    guest = guests.ended("run", f"ln -sf {victim} console.log; echo 0 > guest-exit")
    assert guest.exit_code() == 0
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("mkdir guest-exit", r"without finishing.*\(nothing\)"),
        ("rm console.log; mkdir console.log", r"without finishing.*\(nothing\)"),
        (
            "rm console.log; mkdir console.log; ln -s / link; echo 0 > guest-exit",
            "cannot be looked through: .*Is a directory",
        ),
    ],
)
def test_a_directory_in_place_of_a_file_is_an_error_of_that_run(
    guests: Guests, script: str, said: str
) -> None:
    guest = guests.ended("run", script)
    with pytest.raises(GuestError, match=f"(?s){said}"):
        guest.exit_code()


def test_little_is_read_of_what_a_guest_made_large(guests: Guests) -> None:
    guest = guests.ended(
        "run", "truncate -s 64G guest-exit console.log; echo last words >> console.log"
    )
    address_space = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, address_space[1]))
    try:
        with pytest.raises(GuestError, match=r"(?s)without finishing.*last words$"):
            guest.exit_code()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, address_space)


def test_nothing_of_an_ended_guest_runs_on(guests: Guests) -> None:
    """Also what its first process did not wait for, which might still write."""
    guest = guests.boot("run", "while :; do echo more; done > log & exec sleep 60")
    while not (guest.run_dir / "log").exists():
        assert select.select([guest], [], [], 0.02)[0] == []
    guest.close()
    size = (guest.run_dir / "log").stat().st_size
    assert select.select([], [], [], 0.1)[0] == []
    assert (guest.run_dir / "log").stat().st_size == size


def test_a_guest_that_has_just_been_started_is_ended(guests: Guests) -> None:
    """At any moment of its start: bubblewrap's child is not bound to it at once. Who survives is
    waited for."""
    for number in range(30):
        guest = guests.boot(f"run-{number}", "sleep 20; touch survived")
        assert select.select([guest], [], [], number / 1500)[0] == []
        guest.close()
        assert not (guest.run_dir / "survived").exists()


def test_a_guest_that_is_not_confined_is_said_once(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(confinement, "fence", lambda: Fence("none", "NOT CONFINED: why"))
    boot._say_what_is_not_confined.cache_clear()
    for name in ("one", "two"):
        assert guests.ended(name, "echo 0 > guest-exit").exit_code() == 0
    boot._say_what_is_not_confined.cache_clear()
    assert capsys.readouterr().err == "linklab: THE GUEST IS NOT CONFINED: why\n"


def test_a_kernel_that_cannot_be_started_leaves_nothing(
    guests: Guests, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(PermissionError):
        guests.boot("run", "exit 0")
    assert list(scratch.iterdir()) == []


def test_every_guest_gets_a_core_of_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 3})
    locks: list[IO[str] | None] = []
    try:
        (first, one), (second, two), (third, none) = (boot.reserve_core() for _ in range(3))
        locks += [one, two, none]
        assert (first, second) == (3, 7)
        assert one is not None
        assert two is not None
        assert third in (3, 7)
        assert none is None
        one.close()
        again, three = boot.reserve_core()
        locks.append(three)
        assert again == 3
        assert three is not None
    finally:
        for lock in locks:
            if lock is not None:
                lock.close()


def memory_directory(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, tuple[int, int]], needed: int = 1 << 20
) -> str:
    """The choice among directories with these mount flags and MiB free; others do not exist."""

    def statvfs(path: str) -> SimpleNamespace:
        flags, mebibytes = places[path]
        return SimpleNamespace(f_flag=flags, f_bavail=mebibytes << 8, f_frsize=4096)

    monkeypatch.setattr(os, "access", lambda path, mode: path in places)
    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(boot, "_maps_executable", lambda path: True)
    return str(boot.memory_directory(needed))


def test_memory_lies_where_it_may_be_executed_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    ram = {"/dev/shm": (0, 100), "/tmp": (0, 100)}
    assert memory_directory(monkeypatch, ram) == "/dev/shm"
    noexec = {**ram, "/dev/shm": (os.ST_NOEXEC | os.ST_NOSUID, 100)}
    assert memory_directory(monkeypatch, noexec) == "/tmp"
    assert memory_directory(monkeypatch, {**ram, "/dev/shm": (0, 63)}, 64 << 20) == "/tmp"
    assert memory_directory(monkeypatch, {"/var/tmp": (0, 100)}) == "/var/tmp"
    monkeypatch.setenv("TMPDIR", "/mine")
    assert memory_directory(monkeypatch, {**ram, "/mine": (0, 100)}) == "/mine"
    assert memory_directory(monkeypatch, ram) == "/dev/shm"
    monkeypatch.setenv("TMPDIR", "mine")
    assert memory_directory(monkeypatch, {**ram, "mine": (0, 100)}) == str(Path("mine").absolute())


def test_a_machine_without_such_a_place_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    with pytest.raises(GuestError, match=r"nothing is writable.*set TMPDIR.*--tmpfs /tmp:exec"):
        memory_directory(monkeypatch, {})
    full = {"/dev/shm": (os.ST_NOEXEC, 100), "/tmp": (0, 1)}
    with pytest.raises(GuestError) as error:
        memory_directory(monkeypatch, full, 64 << 20)
    assert "/dev/shm forbids execution, /tmp has less than 64 MiB free" in str(error.value)


def test_no_more_guests_than_find_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    assert boot.side_by_side(free // 3) in (2, 3, 4)
    assert boot.side_by_side(free * 9 // 10) == 1
