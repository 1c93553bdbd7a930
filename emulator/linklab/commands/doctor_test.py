import json
import shutil
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from linklab.commands import doctor
from linklab.places import choice, host_programs
from linklab.places.emulated import qemu
from linklab.places.guest import confinement, image, image_root, kernel
from linklab.places.guest.confinement import Fence
from linklab.places.guest.ending import GuestError
from linklab.runs import clients


@pytest.fixture
def healthy(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which everything works."""
    monkeypatch.setattr(clients, "client_obstacle", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(host_programs, "obstacle", there)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10e9))
    monkeypatch.setattr(choice, "guest_obstacle", lambda: None)
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: None)
    monkeypatch.setattr(qemu, "find", lambda: qemu.Qemu(Path("/usr/bin/qemu"), (7, 2)))
    monkeypatch.setattr(choice, "host_obstacle", lambda: None)
    monkeypatch.setattr(kernel, "cached", lambda *_: Path("/cache/linux-abc"))
    monkeypatch.setattr(image, "cached", lambda name: Path(f"/cache/{name}-def"))
    monkeypatch.setattr(doctor, "memory_directory", lambda: Path("/dev/shm"))
    fenced(monkeypatch, Fence("namespaces", "in namespaces"))
    monkeypatch.setenv("COLUMNS", "1000")  # A finding a line.


def there(program: host_programs.HostProgram) -> str | None:
    return None if shutil.which(program.name) else "missing"


def report(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = doctor.run(Namespace(json=False))
    return code, capsys.readouterr().out


def fenced(monkeypatch: pytest.MonkeyPatch, fence: Fence) -> None:
    monkeypatch.setattr(confinement, "fence", lambda: fence)


def test_a_guest_that_is_not_confined_is_said(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fenced(monkeypatch, Fence("none", "NOT CONFINED: why"))
    assert doctor.run(Namespace(json=False)) == 0
    assert "-   confinement  NOT CONFINED: why" in capsys.readouterr().out


def test_all_is_well(healthy: None, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = report(capsys)
    assert code == 0
    assert out.rstrip().endswith("\nlabs can run here")
    assert all(line.startswith("ok ") for line in out.splitlines()[:-2])
    assert "guest place  /cache/linux-abc, /cache/guest-def, memory in /dev/shm" in out


def test_it_fits_into_the_terminal(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(choice, "host_obstacle", lambda: "the kernel lacks what it needs " * 4)
    doctor.run(Namespace(json=False))
    said = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 or " " not in line.strip() for line in said), "paths stay whole"


def test_for_machines(healthy: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(Namespace(json=True)) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["usable"] is True
    assert {"what", "fine", "words", "needed"} == set(read["findings"][0])
    assert "guest place" in {finding["what"] for finding in read["findings"]}


def test_a_missing_program_is_named_with_its_package(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "setpriv" else name)
    code, out = report(capsys)
    assert code == 1
    assert "NO  util-linux   missing: apt-get install util-linux\n" in out
    assert "no lab can run here yet" in out


@pytest.mark.parametrize(
    ("program", "line"),
    [
        # What the guest has itself, the host need not have.
        ("mnexec", "mininet      missing, for the host place: apt-get install mininet"),
        ("aria2c", "aria2        missing, for the host place and `exec`: apt-get install aria2"),
        (
            "slirp4netns",
            "slirp4netns  missing, for --origin, --outside and --listen-proxy: "
            "apt-get install slirp4netns",
        ),
    ],
)
def test_a_missing_program_that_hinders_nothing_is_said_with_what_needs_it(
    healthy: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    line: str,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else name)
    code, out = report(capsys)
    assert code == 0
    assert out.count(line.split()[0]) == 2
    assert f"-   {line}\n" in out


def test_the_first_run_brings_the_image(
    healthy: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(image, "cached", lambda name: None)
    monkeypatch.setattr(image_root, "obstacle", lambda: None)
    assert report(capsys)[0] == 0
    monkeypatch.setattr(image, "IN_WHEEL", tmp_path / "image")
    assert "the first run makes it, in minutes, memory in" in report(capsys)[1]
    (tmp_path / "image").mkdir()
    code, out = report(capsys)
    assert code == 0
    assert "its image is not made yet: the first run unpacks it from the wheel, memory" in out


def test_a_machine_that_cannot_make_the_guest_is_told_so_and_not_to_try(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(image_root, "obstacle", lambda: "no namespaces")
    for made in (image, kernel):
        monkeypatch.setattr(made, "cached", lambda *_: None)
        _, out = report(capsys)
        assert " is not " in out
        assert "yet: no namespaces\n" in out


def test_a_release_that_is_named_brings_the_image(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(image_root, "obstacle", lambda: "take it from a release")
    monkeypatch.setattr(image, "cached", lambda _: None)
    for named, words in (
        ("/media/linklab", "its image is not made yet: the first run fetches it (LINKLAB_RELEASE)"),
        ("ftp://x", "its image is not made yet: LINKLAB_RELEASE=ftp://x: allowed: a directory"),
        ("", "its image is not made yet: take it from a release"),
    ):
        monkeypatch.setenv("LINKLAB_RELEASE", named)
        assert words in " ".join(report(capsys)[1].split())


def test_what_no_package_of_this_system_brings_is_not_told_to_be_installed(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"h2o"}
    monkeypatch.setattr(shutil, "which", lambda name: None if name in missing else name)
    _, out = report(capsys)
    assert "missing, for the host place: Debian 12 has h2o, 13 and later have not\n" in out
    missing |= {"apt-get", "mnexec"}
    _, out = report(capsys)
    assert "missing, for the host place: install mininet\n" in out


def test_one_place_is_enough(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(choice, "host_obstacle", lambda: "not root")
    code, out = report(capsys)
    assert code == 0
    assert "-   host place   not root\n" in out

    monkeypatch.setattr(kernel, "cached", lambda *_: None)
    monkeypatch.setattr(image_root, "obstacle", lambda: "no namespaces")
    code, out = report(capsys)
    assert code == 1
    assert "-   guest place  its kernel is not made yet: no namespaces\n" in out


def refused() -> Path:
    raise GuestError("nowhere to keep it")


def test_a_guest_without_memory_is_no_place(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "memory_directory", refused)
    assert "-   guest place  nowhere to keep it\n" in report(capsys)[1]


def test_a_full_disk_and_an_unbuilt_client_are_said(
    healthy: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1e9))
    monkeypatch.setattr(clients, "client_obstacle", lambda: "not there: why")
    code, out = report(capsys)
    assert code == 1
    assert f"NO  cache        {tmp_path}/cache, 1 GB free (3 needed)\n" in out
    assert "NO  client       not there: why\n" in out


def test_qemu_is_named_with_its_version_or_its_package(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = report(capsys)
    assert "ok  emulation    /usr/bin/qemu, version 7.2, about 15 times slower" in out
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: "missing: apt-get install it")
    code, out = report(capsys)
    assert code == 0
    assert (
        "-   emulation    for another processor than x86-64: missing: apt-get install it\n" in out
    )


def test_an_emulated_machine_needs_its_kernel(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(choice.PROCESSOR, "emulated")
    monkeypatch.setattr(kernel, "cached", lambda one=kernel.GUEST: one == kernel.GUEST or None)
    assert "guest place  its kernel is not made yet" in report(capsys)[1]
