"""Finds QEMU, which emulates the machine for guests, and makes its command.

The processor that QEMU emulates has the instructions that decide what programs do. Without AES, TLS
would choose another cipher and other figures would come out.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.errors import LinklabError

PROGRAM: Final = "qemu-system-x86_64"

LEAST: Final = (7, 0)
"""The oldest version in which figures were compared with native ones is 7.2. 7.0 has `-M microvm`
with all options that are used here."""

PACKAGES: Final = {
    "apt-get": "qemu-system-x86",
    "dnf": "qemu-system-x86-core",
    "pacman": "qemu-system-x86",
    "brew": "qemu",
}
"""The package by package manager."""

_SAYS: Final = re.compile(r"version (\d+)\.(\d+)(?:\.\d+)?")


@dataclass(frozen=True)
class Qemu:
    """A QEMU of this system: its path and version."""

    path: Path
    version: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.path}, version {self.version[0]}.{self.version[1]}"


class QemuError(LinklabError, RuntimeError):
    """There is no QEMU that can be used. The message says what to install."""


def install() -> str:
    """Returns what installs QEMU on this system."""
    for manager, package in PACKAGES.items():
        if shutil.which(manager) is not None:
            return f"{manager} {'-S' if manager == 'pacman' else 'install'} {package}"
    return f"install QEMU's {PROGRAM}"


@functools.cache
def find() -> Qemu:
    """Returns the QEMU on PATH. Raises QemuError if it is missing, broken or too old."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise QemuError(f"{PROGRAM} is missing: {install()}")
    try:
        done = subprocess.run(
            [found, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise QemuError(f"{found} cannot be run: {error.strerror}") from error
    said = _SAYS.search(done.stdout)
    if done.returncode != 0 or said is None:
        words = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise QemuError(f"{found} --version says: {words[0]}")
    version = int(said[1]), int(said[2])
    if version < LEAST:
        raise QemuError(
            f"{found} is version {version[0]}.{version[1]}; "
            f"an emulated processor needs {LEAST[0]}.{LEAST[1]} or newer"
        )
    return Qemu(Path(found), version)


def command(
    qemu: Qemu, kernel: Path, log: Path, memory: int, memory_file: Path, shares: dict[str, str]
) -> list[str]:
    """Returns the command of a machine with `memory` bytes that boots `kernel`.

    `shares` has directories of the host by their tags for mount(8). A tag with a minus is read-only.
    Messages of the kernel go to `log`. Standard input and output are its channel /dev/vport0p1.
    """
    words = [
        str(qemu.path),
        *("-M", "microvm,acpi=off,pit=on,pic=on,rtc=off,memory-backend=memory"),
        *("-cpu", "max"),
        *("-accel", "tcg,thread=single,tb-size=256"),
        *("-m", f"{memory >> 20}M"),
        "-object",
        f"memory-backend-file,id=memory,size={memory >> 20}M,mem-path={_value(memory_file)},share=on",
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-chardev", f"file,id=log,path={_value(log)}", "-serial", "chardev:log"),
        *("-device", "virtio-serial-device", "-chardev", "stdio,id=jobs,signal=off"),
        *("-device", "virtserialport,chardev=jobs"),
        *("-kernel", str(kernel), "-append", _kernel_arguments()),
    ]
    for tag, directory in shares.items():
        name = tag.rstrip("-")
        access = "readonly=on" if tag.endswith("-") else "readonly=off"
        words += [
            "-fsdev",
            f"local,id={name},path={_value(directory)},security_model=none,multidevs=remap,{access}",
            "-device",
            f"virtio-9p-device,fsdev={name},mount_tag={name}",
        ]
    return words


def _value(path: object) -> str:
    """Returns a path as a value of QEMU's options, in which a comma is doubled."""
    return str(path).replace(",", ",,")


_MOUNTED: Final = "trans=virtio,version=9p2000.L,msize=512000"
_FIRST: Final = (
    "mount -t tmpfs tmpfs /run && mkdir /run/desk && "
    "mount -t 9p desk /run/desk && exec dash -e /run/desk/machine"
)
"""The first program mounts the desk and goes on with the script there (machine.sh). The kernel
takes words with an equals sign or a point for settings, and QEMU adds some at the end."""


def _kernel_arguments() -> str:
    return " ".join(
        [
            *("console=ttyS0", "quiet", "panic=-1", "reboot=triple", "no_timer_check"),
            *("tsc=reliable", "root=image", "rootfstype=9p"),
            f"rootflags={_MOUNTED},access=any,cache=loose",
            "ro",
            "init=/usr/bin/dash",
            "-c",
            f'"{_FIRST}"',
        ]
    )
