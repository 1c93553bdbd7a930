"""Makes and boots emulated machines: Debian 12's packages, a kernel of Debian's, and linklab's wheel.

The root file system is unpacked with linklab's own `deb`, and lies in the machine's memory.
"""

import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from conftest import REPOSITORY
from linklab.core.paths import MULTILINK, cache_dir
from linklab.places.guest import deb, image, kernel


@dataclass(frozen=True)
class Kind:
    """A kind of machine.

    Attributes:
        architecture: what Debian and Go call it; `processor` is what Python calls it.
        qemu: the emulator with the options that only this kind has.
        terminal: the device of the kernel's messages.
        kernel: the kernel's package, of `suite` and below `part` in Debian's archive.
        packages: the packages that only this kind has.
    """

    architecture: str
    processor: str
    qemu: str
    terminal: str
    kernel: str
    part: str = "debian"
    suite: str = "bookworm"
    packages: tuple[str, ...] = ()


ARM64: Final = Kind(
    "arm64",
    "aarch64",
    "qemu-system-aarch64 -M virt -cpu cortex-a72",
    "ttyAMA0",
    "linux-image-arm64",
    packages=("qemu-system-x86",),
)
RELEASE: Final = "/var/release"
"""The directory of the arm64 machine with the guest's image as a release has it."""


def x86_64(suite: str) -> Kind:
    """Returns the kind of an x86-64 machine with the kernel of a Debian suite."""
    part = "debian-security" if suite.endswith("-security") else "debian"
    qemu = "qemu-system-x86_64 -M q35 -cpu max"
    return Kind("amd64", "x86_64", qemu, "ttyS0", "linux-image-cloud-amd64", part, suite)


_QEMU: Final = (
    "-accel tcg -smp 1 -m 4G -icount shift=1,sleep=off -nodefaults -nographic -no-reboot "
    "-serial stdio -device virtio-rng-pci -device virtio-serial-pci "
    "-device virtserialport,chardev=words"
)
"""A machine's clock counts 2 ns for each instruction, and jumps while the machine waits. So real
time in the machine does not depend on how busy this machine is."""

_PACKAGES: Final = (
    # What `apt-get install` brings for the host place, as the handbook says.
    *("python3", "mininet", "h2o", "iproute2", "util-linux", "ca-certificates", "bubblewrap"),
    # What every Debian has.
    *("bash", "coreutils", "dash", "kmod", "procps", "sed", "grep", "findutils", "mawk", "mount"),
)
_SUITES = (
    ("debian", "bookworm"),
    ("debian", "bookworm-updates"),
    ("debian-security", "bookworm-security"),
)

_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")

_MODULES = re.compile(
    r"(usr/)?lib/modules/[^/]+/(modules\.|vmlinuz|kernel/(net|lib|crypto|arch|drivers/(char|virtio|net/[^/]+\.ko)))"
)
"""The kernel's modules that a lab can need. A thousand drivers stay out of the machine's memory."""

_LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/locale/", "boot/System.map")

_BOOT_S: Final = 600


class MachineError(RuntimeError):
    """The emulated machine cannot be made, or it does not answer."""


def run(*words: object, **options: Any) -> str:
    """Returns what a program prints. Raises MachineError with its last words."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise MachineError(f"{words[0]}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def _packages(kind: Kind, work: Path) -> list[Path]:
    """Downloads Debian's packages of a kind, which apt verifies. Nothing of this machine's changes."""
    for name in ("lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    suites = dict.fromkeys((*_SUITES, (kind.part, kind.suite)))
    (work / "sources.list").write_text(
        "".join(f"deb http://deb.debian.org/{part} {suite} main\n" for part, suite in suites)
    )
    of_kernel = f"Pin: release n={kind.suite}\nPin-Priority:"
    others = "" if kind.suite == "bookworm" else f"Package: *\n{of_kernel} -1\n\n"
    (work / "preferences").write_text(f"{others}Package: linux-*\n{of_kernel} 990\n")
    (work / "apt.conf").write_text(
        f'Dir::State::status "{work}/status";\nDir::State::lists "{work}/lists";\n'
        f'Dir::Cache "{work}/cache";\nDir::Etc::sourcelist "{work}/sources.list";\n'
        f'Dir::Etc::preferences "{work}/preferences";\nDir::Etc::preferencesparts "/dev/null";\n'
        'Dir::Etc::sourceparts "/dev/null";\nAPT::Architectures {};\n'
        f'APT::Architecture "{kind.architecture}";\n'
        'APT::Install-Recommends "false";\nAcquire::Languages "none";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(work / "apt.conf")}
    run("apt-get", "update", "-qq", env=environment)
    run(
        "apt-get",
        "install",
        "-y",
        "-qq",
        "--download-only",
        kind.kernel,
        *kind.packages,
        *_PACKAGES,
        env=environment,
    )
    return sorted((work / "cache" / "archives").glob("*.deb"))


def _pip(kind: Kind, *words: object) -> None:
    """Calls pip, which chooses as Debian 12's would in the machine."""
    run(
        *(sys.executable, "-m", "pip", words[0], "-q", "--only-binary", ":all:"),
        *(word for one in _PLATFORMS for word in ("--platform", f"{one}_{kind.processor}")),
        *("--python-version", "3.11", *words[1:]),
    )


def _own(kind: Kind, root: Path, work: Path) -> None:
    """Installs what linklab ships.

    On arm64 these are the wheel with programs and the image of a release. On x86-64 they are the
    wheel without programs, this checkout's client, and a cache with kernel and image.

    All Python packages that `make setup` wants are downloaded and checked by their hashes.
    """
    pins = REPOSITORY / "emulator/development.txt"
    _pip(kind, "download", "--no-deps", "--require-hashes", "-d", work, "-r", pins)
    environment = dict(os.environ)
    if kind.processor != "x86_64":
        platform = f"linux-{kind.architecture}"
        release = work / "release"
        _release(kind, platform, release, root / RELEASE.lstrip("/"))
        environment |= {"LINKLAB_WHEEL": platform, "LINKLAB_WHEEL_FROM": str(release)}
    builder = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", work)
    run(*builder, cwd=REPOSITORY / "emulator", env=environment)
    packages = root / "usr/local/lib/python3.11/dist-packages"
    _pip(kind, "install", "--no-index", "--find-links", work, "--target", packages, "linklab")
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True, exist_ok=True)
    if kind.processor != "x86_64":
        for program in (packages / "bin").glob("multilink*"):
            program.rename(programs / program.name)
    else:
        shutil.copy(MULTILINK, programs)  # Another build would have other figures.
        cache = root / "var/cache/linklab"
        for made in (image.cached("guest"), kernel.cached()):
            assert made is not None, "make setup"
            run("cp", "-a", "--parents", made.relative_to(cache_dir()), cache, cwd=cache_dir())


def _release(kind: Kind, platform: str, release: Path, images: Path) -> None:
    """Makes what wheels take of a release, and in `images` the archive of the guest's image."""
    release.mkdir()
    images.mkdir(parents=True)
    environment = {**os.environ, "GOARCH": kind.architecture}
    run(REPOSITORY / "emulator/setup/client", release / f"multilink-{platform}", env=environment)
    shutil.copy(MULTILINK, release / "multilink-linux-amd64")
    for recipe in kernel.RECIPES:
        shutil.copy(kernel.ensure(recipe=recipe), release)
    image.ensure("guest")
    image.pack("guest", images / image.archive_name("guest"))


def _wanted(name: str) -> bool:
    if "lib/modules/" in name and not _MODULES.match(name):
        return False
    return not name.startswith(_LEFT_OUT)


def make(kind: Kind, work: Path) -> None:
    """Makes the kernel and the initramfs of a machine."""
    root = work / "root"
    root.mkdir()
    deb.link_merged(root)
    for package in _packages(kind, work / "apt"):
        deb.unpack(package, root, wanted=_wanted)
    for name in ("root", "proc", "sys", "dev", "run", "tmp", "new", "var/tmp", "var/cache/linklab"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/passwd").write_text(
        "root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "usr/bin/awk").symlink_to("mawk")
    shutil.copy(Path(__file__).with_name("inside.py"), root / "init")
    (root / "init").chmod(0o755)
    _own(kind, root, work / "wheels")
    # Debian 14 has it beside its modules.
    (booted,) = (*(root / "boot").glob("vmlinuz-*"), *root.glob("usr/lib/modules/*/vmlinuz"))
    booted.rename(work / "kernel")
    with (work / "initramfs").open("wb") as file:
        _archive(root, file)


def _archive(root: Path, out: IO[bytes]) -> None:
    """Writes a directory as the kernel's initramfs (Documentation/driver-api/early-userspace)."""

    def add(name: str, mode: int, content: bytes) -> None:
        encoded = name.encode() + b"\0"
        fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        out.write(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))

    for path in sorted(root.rglob("*")):
        mode, name = path.lstat().st_mode, str(path.relative_to(root))
        if stat.S_ISLNK(mode):
            add(name, mode, os.fsencode(path.readlink()))
        elif stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            add(name, mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    add("TRAILER!!!", 0, b"")


@dataclass(frozen=True)
class Done:
    """A program that has ended in the machine."""

    code: int
    out: str
    err: str


class Machine:
    """A running machine. `call` runs a program in it, as root."""

    def __init__(self, channel: socket.socket, console: Path) -> None:
        self._channel, self._console = channel, console
        self._waiting = b""

    def _line(self, patience_s: float) -> Any:
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._waiting:
            ready, _, _ = select.select(
                [self._channel], [], [], max(0, deadline - time.monotonic())
            )
            got = self._channel.recv(65536) if ready else b""
            if not got:
                said = self._console.read_text(errors="replace")[-3000:]
                raise MachineError(f"no answer from the machine; its console:\n{said}")
            self._waiting += got
        line, _, self._waiting = self._waiting.partition(b"\n")
        return json.loads(line)

    def wait_for_boot(self) -> None:
        """Waits until the machine takes commands."""
        assert self._line(_BOOT_S) == "ready"

    def call(self, *words: object, patience_s: float = 300) -> Done:
        """Runs a program to its end."""
        command = [[str(word) for word in words], patience_s]
        self._channel.sendall(json.dumps(command).encode() + b"\n")
        return Done(**self._line(patience_s + 30))

    def shell(self, script: str, patience_s: float = 300) -> Done:
        """Runs a script of bash."""
        return self.call("bash", "-c", script, patience_s=patience_s)


def booted(kind: Kind, work: Path) -> Iterator[Machine]:
    """Boots the machine that `make` has made; yields it; ends it."""
    here, there = socket.socketpair()
    console = work / "console.log"
    with console.open("wb") as log, here, there:
        qemu = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", *kind.qemu.split(), *_QEMU.split()),
                *("-kernel", work / "kernel", "-initrd", work / "initramfs"),
                *("-append", f"console={kind.terminal} panic=-1 rdinit=/init"),
                *("-chardev", f"socket,id=words,fd={there.fileno()}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[there.fileno()],
        )
        there.close()
        try:
            machine = Machine(here, console)
            machine.wait_for_boot()
            yield machine
        finally:
            qemu.send_signal(signal.SIGKILL)
            qemu.wait()
