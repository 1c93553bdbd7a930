import json
import shutil
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from linklab.commands import doctor
from linklab.places import choice, host_programs
from linklab.places.emulated import qemu
from linklab.places.guest import confinement, image, image_root, kernel
from linklab.places.guest.confinement import Fence
from linklab.places.guest.ending import GuestError
from linklab.runs import clients


@dataclass
class Machine:
    """A machine on which everything works, until it is changed."""

    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def answers(self, module: object, name: str, answer: Any) -> None:
        """A function of a module has this answer from now on, whatever it is asked."""
        self.patch.setattr(module, name, lambda *_, **__: answer)

    def lacks(self, *names: str) -> None:
        self.patch.setattr(shutil, "which", lambda name: None if name in names else name)

    def report(self, code: int = 0) -> str:
        assert doctor.run(Namespace(json=False)) == code
        return self.capsys.readouterr().out


@pytest.fixture
def machine(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    made = Machine(monkeypatch, capsys)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(host_programs, "obstacle", there)
    monkeypatch.setattr(image, "cached", lambda name: Path(f"/cache/{name}-def"))
    made.answers(clients, "client_obstacle", None)
    made.answers(shutil, "disk_usage", SimpleNamespace(free=10e9))
    for obstacle in ("guest_obstacle", "emulation_obstacle", "host_obstacle"):
        made.answers(choice, obstacle, None)
    made.answers(qemu, "find", qemu.Qemu(Path("/usr/bin/qemu"), (7, 2)))
    made.answers(kernel, "cached", Path("/cache/linux-abc"))
    made.answers(doctor, "memory_directory", Path("/dev/shm"))
    made.answers(confinement, "fence", Fence("namespaces", "in namespaces"))
    monkeypatch.setenv("COLUMNS", "1000")  # A finding a line.
    return made


def there(program: host_programs.HostProgram) -> str | None:
    return None if shutil.which(program.name) else "missing"


def test_all_is_well(machine: Machine) -> None:
    out = machine.report()
    assert out.rstrip().endswith("\nlabs can run here")
    assert all(line.startswith("ok ") for line in out.splitlines()[:-2])
    assert "guest place  /cache/linux-abc, /cache/guest-def, memory in /dev/shm" in out
    assert "ok  emulation    /usr/bin/qemu, version 7.2, about 15 times slower" in out


def test_it_fits_into_the_terminal(machine: Machine) -> None:
    machine.patch.setenv("COLUMNS", "60")
    machine.answers(choice, "host_obstacle", "the kernel lacks what it needs " * 4)
    said = machine.report().splitlines()
    assert all(len(line) <= 60 or " " not in line.strip() for line in said), "paths stay whole"


def test_for_machines(machine: Machine) -> None:
    assert doctor.run(Namespace(json=True)) == 0
    read = json.loads(machine.capsys.readouterr().out)
    assert read["usable"] is True
    assert {"what", "fine", "words", "needed"} == set(read["findings"][0])
    assert "guest place" in {finding["what"] for finding in read["findings"]}


@pytest.mark.parametrize(
    ("module", "name", "answer", "code", "line"),
    [
        (confinement, "fence", Fence("none", "NOT SO: why"), 0, "-   confinement  NOT SO: why"),
        (choice, "host_obstacle", "not root", 0, "-   host place   not root"),
        (clients, "client_obstacle", "not there: why", 1, "NO  client       not there: why"),
        (choice, "emulation_obstacle", "missing: why", 0, "x86-64: missing: why"),
        (shutil, "disk_usage", SimpleNamespace(free=1e9), 1, "/cache, 1 GB free (3 needed)"),
    ],
)
def test_what_is_not_well_is_said(
    machine: Machine, module: object, name: str, answer: object, code: int, line: str
) -> None:
    machine.answers(module, name, answer)
    assert f"{line}\n" in machine.report(code)


@pytest.mark.parametrize(
    ("program", "code", "line"),
    [
        ("setpriv", 1, "NO  util-linux   missing: apt-get install util-linux"),
        # What the guest has itself, the host need not have.
        ("mnexec", 0, "-   mininet      missing, for the host place: apt-get install mininet"),
        (
            "aria2c",
            0,
            "-   aria2        missing, for the host place and `exec`: apt-get install aria2",
        ),
        (
            "slirp4netns",
            0,
            "-   slirp4netns  missing, for --origin, --outside and --listen-proxy: apt-",
        ),
        ("h2o", 0, "missing, for the host place: Debian 12 has h2o, 13 and later have not"),
    ],
)
def test_a_missing_program_is_said_with_what_needs_it_and_its_package(
    machine: Machine, program: str, code: int, line: str
) -> None:
    machine.lacks(program)
    out = machine.report(code)
    assert line in out
    assert ("no lab can run here yet" in out) == (code == 1)


def test_a_system_without_apt_is_not_told_to_use_it(machine: Machine) -> None:
    machine.lacks("apt-get", "mnexec")
    assert "missing, for the host place: install mininet\n" in machine.report()


def test_the_first_run_brings_the_image(machine: Machine, tmp_path: Path) -> None:
    machine.answers(image, "cached", None)
    machine.answers(image_root, "obstacle", None)
    machine.patch.setattr(image, "IN_WHEEL", tmp_path / "image")
    assert "the first run makes it, in minutes, memory in" in machine.report()
    (tmp_path / "image").mkdir()
    out = machine.report()
    assert "its image is not made yet: the first run unpacks it from the wheel, memory" in out


def test_a_machine_that_cannot_make_the_guest_is_told_so_and_not_to_try(machine: Machine) -> None:
    machine.answers(image_root, "obstacle", "no namespaces")
    for made in (image, kernel):
        machine.answers(made, "cached", None)
        out = machine.report()
        assert " is not " in out
        assert "yet: no namespaces\n" in out


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("/media/linklab", "the first run fetches it (LINKLAB_RELEASE)"),
        ("ftp://x", "LINKLAB_RELEASE=ftp://x: allowed: a directory"),
        ("", "take it from a release"),
    ],
)
def test_a_release_that_is_named_brings_the_image(machine: Machine, named: str, words: str) -> None:
    machine.answers(image_root, "obstacle", "take it from a release")
    machine.answers(image, "cached", None)
    machine.patch.setenv("LINKLAB_RELEASE", named)
    assert f"its image is not made yet: {words}" in machine.report()


def test_without_any_place_there_is_no_lab(machine: Machine) -> None:
    machine.answers(choice, "host_obstacle", "not root")
    machine.answers(kernel, "cached", None)
    machine.answers(image_root, "obstacle", "no namespaces")
    out = machine.report(1)
    assert "-   guest place  its kernel is not made yet: no namespaces\n" in out


def test_a_guest_without_memory_is_no_place(machine: Machine) -> None:
    def refused() -> Path:
        raise GuestError("nowhere to keep it")

    machine.patch.setattr(doctor, "memory_directory", refused)
    assert "-   guest place  nowhere to keep it\n" in machine.report()


def test_an_emulated_machine_needs_its_kernel(machine: Machine) -> None:
    machine.patch.setenv(choice.PROCESSOR, "emulated")
    machine.patch.setattr(kernel, "cached", lambda one=kernel.GUEST: one == kernel.GUEST or None)
    assert "guest place  its kernel is not made yet" in machine.report()
