"""Makes the guest's userland: a directory of Debian 12 in the cache, the same on every machine.

There are two images. `guest` is the root of every guest. `kernel` has the tools that build the
guest's kernel. Both have exactly the packages of image.lock, and are made without root and without
the packages' scripts. This module does what matters of those scripts.

An image's name is a hash of its content (`tree_hash`). image.lock names the expected hash, and an
image with another one is not used.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import lzma
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Literal, cast

from linklab.core import units
from linklab.core.paths import DATA, GUEST_HOST_ROOT, in_cache
from linklab.core.scratch import image_lock, image_prefix
from linklab.display.parts import Progress
from linklab.places.guest import deb, download, image_root, made_once, release
from linklab.places.guest.image_root import ImageError
from linklab.places.guest.locked import lock

Name = Literal["guest", "kernel"]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The guest's Python packages, pinned."""

IN_WHEEL = DATA / "image"
"""Where a wheel has the guest's image."""

PYTHON = "/usr/bin/python3.11"
CACHE_TAG = "cpython-311"
"""The tag in the names of its compiled modules."""

_PYTHON_VERSION = "3.11"
_SITE = "usr/local/lib/python3.11/dist-packages"
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux2014_x86_64")
"""The wheels' platforms that the C library of Debian 12 runs."""

_UNPACKED_TIMES = 4.5
"""The disk space for making an image, as a multiple of its packages' size."""


_WHEEL_BYTES = 32 << 20
"""The limit for a wheel. pip checks the hash only when it has the whole file."""

_LEFT_OUT = (
    *("usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/"),
    *("usr/share/bug/", "usr/share/menu/", "usr/share/bash-completion/"),
    *("usr/lib/systemd/", "lib/systemd/", "etc/init.d/", "usr/share/zoneinfo/"),
)


def wanted(place: str) -> bool:
    """Tells whether a packaged file belongs into an image: no documents except licences. Pure."""
    if place.startswith("usr/share/doc/") and place.count("/") > 3:
        return place.endswith("/copyright")
    return not any(f"{place}/".startswith(folder) for folder in _LEFT_OUT)


def tree_hash(root: Path) -> str:
    """Returns a hash of all below `root`: names, types, modes, contents and link targets.

    Owners and times do not count.
    """
    digest = hashlib.sha256()
    for path in _below(root):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            words = f"link {path.readlink()}"
        elif stat.S_ISDIR(status.st_mode):
            words = f"directory {stat.S_IMODE(status.st_mode):o}"
        else:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            words = f"file {stat.S_IMODE(status.st_mode):o} {content}"
        digest.update(f"{path.relative_to(root)}\0{words}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _below(root: Path) -> Iterator[Path]:
    with os.scandir(root) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_directory in found:
        yield root / name
        if is_directory:
            yield from _below(root / name)


def directory() -> Path:
    return in_cache("image")


def path(name: Name) -> Path:
    """Returns the path of an image, whether it exists or not."""
    return directory() / f"{name}-{lock().trees.get(name, 'not-locked')[:16]}"


def cached(name: Name) -> Path | None:
    return path(name) if path(name).is_dir() else None


def ensure(name: Name, progress: Progress = lambda what, fraction: None) -> Path:
    """Returns the image; makes it if needed. Raises ImageError if it cannot be made."""
    part = made_once.Part(
        called=f"the {name} image",
        directory=directory(),
        lock=image_lock(path(name)),
        prefix=image_prefix(name),
        left=f"new-{name}-*",
        needed_bytes=needed_bytes(name),
        error=ImageError,
    )
    return made_once.ensure(
        part, lambda: cached(name), lambda work: _made_and_checked(name, work, progress), progress
    )


def needed_bytes(name: Name) -> int:
    """Estimates the disk space that making an image takes."""
    return round(_UNPACKED_TIMES * sum(one.size_bytes for one in lock().packages[name]))


def _made_and_checked(name: Name, work: Path, progress: Progress) -> Path:
    if shutil.disk_usage(directory()).free < needed_bytes(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    root = work / "root"
    if not _came_packed(name, root, work, progress):
        make(name, root, work, progress)
        progress("checking its hash", 0.99)
        came, expected = tree_hash(root), lock().trees.get(name)
        if came != expected:
            raise ImageError(
                f"the {name} image came out otherwise than image.lock says ({came[:16]}, not "
                f"{(expected or 'none')[:16]}): please report it with the output of "
                "`linklab doctor`"
            )
    root.rename(path(name))
    return path(name)


def archive_name(name: Name) -> str:
    return f"{path(name).name}.tar.xz"


def pack(name: Name, target: Path, preset: int = 6) -> None:
    """Writes the cached image to an archive. The same image and preset always give the same bytes."""
    root = path(name)
    with (
        lzma.open(target, "wb", preset=preset) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive,
    ):
        for one in _below(root):
            member = archive.gettarinfo(one, str(one.relative_to(root)))
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            if not one.is_file() or one.is_symlink():
                archive.addfile(member)
                continue
            # A hard link becomes a separate file.
            member.type, member.linkname, member.size = tarfile.REGTYPE, "", one.stat().st_size
            with one.open("rb") as content:
                archive.addfile(member, content)


class _Bounded:
    """A reader for untrusted content. Raises ValueError after `most_bytes`."""

    def __init__(self, content: IO[bytes], most_bytes: int) -> None:
        self._content = content
        self._left, self._most = most_bytes, most_bytes

    def read(self, size: int) -> bytes:
        piece = self._content.read(size)
        self._left -= len(piece)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {self._most} bytes")
        return piece


def _came_packed(name: Name, root: Path, work: Path, progress: Progress) -> bool:
    """Unpacks the image that a wheel brings, or that of the user's release. Tells whether it is the
    one of image.lock.

    Other problems are reported. Raises ImageError if no image can be made here.
    """
    packed = IN_WHEEL / archive_name(name)
    try:
        if name != "guest" or (not packed.exists() and release.address() is None):
            return False
        if not packed.exists():
            packed = work / "image.tar.xz"
            release.fetch(
                archive_name(name),
                packed,
                most_bytes=needed_bytes(name),
                progress=lambda of: progress(f"fetching, {units.percent(of)}", 0.8 * of),
            )
        _unpack(packed, root, lambda of: progress(f"unpacking, {units.percent(of)}", 0.99 * of))
        progress("checking its hash", 0.99)
        if tree_hash(root) != lock().trees.get(name):
            raise release.ReleaseError(
                f"that of {_origin(packed)} is not the one that image.lock says"
            )
    except (release.ReleaseError, tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
        image_root.report_making(f"{name} image", error)
        shutil.rmtree(root, ignore_errors=True)
        return False
    return True


def _origin(packed: Path) -> str:
    return "the wheel" if packed.is_relative_to(IN_WHEEL) else "the release"


def _unpack(packed: Path, root: Path, progress: Callable[[float], None]) -> None:
    """Unpacks what `pack` wrote, within bounds."""
    root.mkdir(mode=0o755)
    size_bytes = packed.stat().st_size
    with (
        packed.open("rb") as file,
        lzma.open(file) as content,
        tarfile.open(
            fileobj=cast(IO[bytes], _Bounded(content, needed_bytes("guest"))), mode="r|"
        ) as archive,
    ):
        for member in archive:
            if member.islnk():  # `pack` writes none. A hard link could lead out.
                raise ValueError(f"{member.name} is a hard link")
            deb.extract(archive, member, root, _inside(member.name, root))
            progress(file.tell() / size_bytes)
    _normalise(root)


def _inside(name: str, root: Path) -> str:
    """Returns the name of an archive's member if it lies in `root` without crossing a link.

    Debian 12's Python 3.11.2 has no extraction filters. Raises ValueError for other names.
    """
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise ValueError(f"{name} leads out of the image")
    parent = (root / name).parent
    if Path(os.path.realpath(parent)) != Path(os.path.realpath(root), *Path(name).parent.parts):
        raise ValueError(f"{name} lies behind a link")
    return name


def make(name: Name, root: Path, work: Path, progress: Progress = lambda what, of: None) -> None:
    """Makes an image at `root`, with `work` for temporary files. It does not check the result.

    Raises ImageError and OSError.
    """
    refused = image_root.obstacle()
    if refused is not None:
        raise ImageError(refused)
    packages = lock().packages[name]
    total, there = sum(one.size_bytes for one in packages), 0
    one_at_a_time = threading.Lock()

    def fetched(size_bytes: int) -> None:
        nonlocal there
        with one_at_a_time:
            there += size_bytes
            progress(f"fetching {there / 1e6:.0f} of {total / 1e6:.0f} MB", 0.6 * there / total)

    files = work / "packages"
    files.mkdir()
    try:
        download.fetch(packages, lock().snapshot, files, fetched)
        wheels: list[Path] = []
        if name == "guest":
            progress("fetching its Python packages", 0.6)
            wheels = _fetch_wheels(work)
        root.mkdir(mode=0o755)
        deb.link_merged(root)
        for count, package in enumerate(packages, 1):
            deb.unpack(files / package.file_name, root, wanted=wanted)
            (files / package.file_name).unlink()
            progress(
                f"unpacking, {count} of {len(packages)} packages",
                0.6 + 0.3 * count / len(packages),
            )
        _configure(root)
        if name == "guest":
            for wheel in wheels:
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(root / _SITE)
            progress("compiling its Python modules", 0.9)
            _compile(root)
        _cache_libraries(root)
    except (deb.DebError, download.DownloadError) as error:
        raise ImageError(f"the {name} image cannot be made: {error}") from error
    _normalise(root)


def _configure(root: Path) -> None:
    """Does what the packages' scripts would have done, as far as linklab needs it."""
    for place in (GUEST_HOST_ROOT.name, "proc", "sys", "dev", "run", "tmp"):
        (root / place).mkdir(exist_ok=True)
    (root / "usr/bin/sh").unlink(missing_ok=True)
    (root / "usr/bin/sh").symlink_to("dash")
    for name, program in (("awk", "mawk"), ("which", "which.debianutils")):
        if (root / "usr/bin" / program).exists():
            (root / "usr/bin" / name).symlink_to(program)
    for name in ("passwd", "group"):
        master = root / f"usr/share/base-passwd/{name}.master"
        if master.exists():
            shutil.copyfile(master, root / "etc" / name)
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")


def _fetch_wheels(work: Path) -> list[Path]:
    """Downloads the wheels of requirements.txt by pip, which knows the user's index and proxy."""
    wheels = work / "wheels"
    words = [
        *image_root.ENDS_WITH_US,
        "prlimit",
        f"--fsize={_WHEEL_BYTES}",
        *_pip(work),
        *("download", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--require-hashes", "--only-binary", ":all:"),
        *("--implementation", "cp", "--python-version"),
        _PYTHON_VERSION,
        *(f"--platform={platform}" for platform in _PLATFORMS),
        "--dest",
        str(wheels),
        "-r",
        str(REQUIREMENTS),
    ]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        # The cause is in pip's warnings. Its error only says that there is no such package.
        tried = [line for line in said[:-1] if line.startswith("WARNING: Retrying")][-1:]
        raise ImageError(
            "the guest's Python packages cannot be fetched by pip:\n  "
            + "\n  ".join([*tried, said[-1]])
        )
    return sorted(wheels.iterdir())


def _pip(work: Path) -> list[str]:
    """Returns the first words of a pip command: this Python's pip, else that of a new environment.

    An installation by uv has no pip, so an environment with pip is made in `work`. Raises
    ImageError if neither works.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    environment = work / "environment"
    words = [sys.executable, "-m", "venv", str(environment)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise ImageError(
            f"the guest's Python packages are fetched by pip, which {sys.executable} lacks: "
            "install it (on Debian and Ubuntu python3-venv), or take image and kernel from a "
            f"release ({release.RELEASE})"
        )
    return [str(environment / "bin" / "python"), "-m", "pip"]


def _compile(root: Path) -> None:
    """Compiles the image's Python modules one after the other, so the results are reproducible."""
    for folder in ("usr/lib/python3.11", "usr/lib/python3", "usr/local/lib/python3.11"):
        image_root.call(
            root,
            [
                PYTHON,
                *("-I", "-S", "-B", "-m", "compileall", "-q", "-f"),
                *("--invalidation-mode", "unchecked-hash"),
                f"/{folder}",
            ],
            writable=True,
        )


def _cache_libraries(root: Path) -> None:
    """Writes ld.so.cache. Without it the linker's searches depend on the processor's generation."""
    image_root.call(root, ["/usr/sbin/ldconfig", "-X", "-i"], writable=True)
    shutil.rmtree(root / "var/cache/ldconfig", ignore_errors=True)


def _normalise(root: Path) -> None:
    """Sets modes and times that do not depend on the user and the time of making the image."""
    for one in (root, *_below(root)):
        status = one.lstat()
        if not stat.S_ISLNK(status.st_mode):
            executable = stat.S_ISDIR(status.st_mode) or status.st_mode & stat.S_IXUSR
            one.chmod(0o755 if executable else 0o644)
        os.utime(one, (0, 0), follow_symlinks=False)
