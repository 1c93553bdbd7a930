from pathlib import Path

import pytest

from linklab.places.emulated import qemu
from linklab.places.emulated.qemu import QemuError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    qemu.find.cache_clear()
    return tmp_path


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", (7, 2)),
        ("QEMU emulator version 10.0.2 (qemu-10.0.2-1.fc42)", (10, 0)),
        ("QEMU emulator version 11.1.0", (11, 1)),
    ],
)
def test_qemu_is_found_with_its_version(
    programs: Path, said: str, version: tuple[int, int]
) -> None:
    program(programs, qemu.PROGRAM, f"echo '{said}'")
    assert qemu.find() == qemu.Qemu(programs / qemu.PROGRAM, version)


def test_without_qemu_the_package_of_this_system_is_named(programs: Path) -> None:
    for manager, words in (
        ("brew", "brew install qemu"),
        ("pacman", "pacman -S qemu-system-x86"),
        ("dnf", "dnf install qemu-system-x86-core"),
        ("apt-get", "apt-get install qemu-system-x86"),
    ):
        program(programs, manager, "")
        with pytest.raises(QemuError, match=f"^qemu-system-x86_64 is missing: {words}$"):
            qemu.find()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo QEMU emulator version 6.2.0", "is version 6.2; .* needs 7.0 or newer$"),
        ("echo no library >&2; exit 127", "--version says: no library$"),
        ("exit 0", "--version says: nothing$"),
    ],
)
def test_a_qemu_that_cannot_be_used_gives_one_line(programs: Path, script: str, words: str) -> None:
    program(programs, qemu.PROGRAM, script)
    with pytest.raises(QemuError, match=words):
        qemu.find()


def test_a_comma_in_a_path_is_no_end_of_it() -> None:
    words = qemu.command(
        qemu.Qemu(Path("/q"), (7, 2)),
        Path("/kernel"),
        Path("/a,b/log"),
        1 << 30,
        Path("/a,b"),
        {"desk": "/a,b/desk", "host-": "/"},
    )
    assert "file,id=log,path=/a,,b/log" in words
    assert "-m 1024M" in " ".join(words)
    shares = [word for word in words if word.startswith("local,")]
    assert shares[0].startswith("local,id=desk,path=/a,,b/desk,")
    assert shares[0].endswith("readonly=off")
    assert shares[1].startswith("local,id=host,path=/,")
    assert shares[1].endswith("readonly=on")


def test_the_kernel_s_command_line_is_not_too_long() -> None:
    """arch/x86/include/asm/setup.h: COMMAND_LINE_SIZE is 2048. QEMU adds its devices."""
    assert len(qemu._kernel_arguments()) < 1500
