"""Builds the guest's kernel from Debian's kernel source with Debian's compiler.

Source and compiler are in an image (image.py), so the kernel is the same to the byte on every
machine. The cache keeps it. The cache key is a hash of configuration, patch and image. Only a
change of one of them builds the kernel again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from linklab.core.error_report import report_error
from linklab.core.locks import locked
from linklab.core.paths import INSTALLED, in_cache
from linklab.core.scratch import build_prefix, remove_image
from linklab.places.guest import image, image_root, release
from linklab.places.guest.locked import Built, lock, version

SOURCE_PACKAGE = "linux-source-7.2"
SOURCE_ARCHIVE = f"/usr/src/{SOURCE_PACKAGE}.tar.xz"
"""The path of the source in the image."""

EXPECTED_STEPS = 1250
"""The number of compiler lines of a build, for the progress bar."""

_HERE = Path(__file__).parent
_CONFIG = _HERE / "kernel.config"
_PATCH = _HERE / "kernel.patch"

NEEDED_BYTES = 1_300_000_000
"""The disk space for a build, without the image."""

_UNUSED = ("drivers/gpu/drm/*/", "drivers/net/ethernet/*/", "drivers/media/*/", "sound/soc/*/")
"""Folders whose C files no UML kernel needs. They are a third of the archive."""

Progress = Callable[[str, float], None]
"""A function that is called with the current step and the finished fraction."""


class KernelError(RuntimeError):
    """The guest's kernel is not available. The message says what to do."""


def source_version() -> str:
    """Returns the version of the kernel source."""
    return version(SOURCE_PACKAGE) or "unknown"


def key() -> str:
    """Returns the cache key of the kernel that this package's files and the image make."""
    digest = hashlib.sha256()
    for part in (_CONFIG.read_bytes(), _PATCH.read_bytes(), image.path("kernel").name.encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def name() -> str:
    """Returns the kernel's file name, in the cache and in a release."""
    return f"linux-{key()}"


def cached() -> Path | None:
    """Returns the kernel in the cache, or None."""
    path = in_cache("kernel") / name()
    return path if path.exists() else None


def described(path: Path) -> Built:
    """Returns the entry of image.lock for the kernel at `path`; None if it has another one."""
    content = path.read_bytes()
    return Built(path.name, hashlib.sha256(content).hexdigest(), len(content))


def ensure(progress: Progress = lambda what, fraction: None) -> Path:
    """Returns the guest's kernel; builds it if needed (about 4 min on two cores).

    Raises KernelError if the machine is not x86-64 (UML needs it), the image is not available, or
    the build fails (the message names its log).
    """
    if platform.machine() != "x86_64":
        raise KernelError(
            f"User Mode Linux needs an x86-64 machine, this is {platform.machine()}: "
            "use --place host"
        )
    kernel = cached()
    if kernel is not None:
        return kernel
    directory = in_cache("kernel")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory / "lock"):
            # This process has the lock, so the process that made these was killed.
            for stale in directory.glob("build-*-*"):
                shutil.rmtree(stale, ignore_errors=True)
            kernel = cached()
            if kernel is not None:
                return kernel
            work = Path(tempfile.mkdtemp(prefix=build_prefix(), dir=directory))
            try:
                return _fetch(directory, work, progress) or _build(directory, work, progress)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise KernelError(f"the guest kernel cannot be built: {error}") from error
        raise KernelError(
            f"no room to build the guest kernel: {directory} needs {NEEDED_BYTES / 1e6:.0f} MB; "
            "LINKLAB_CACHE names another place"
        ) from error


def _fetch(directory: Path, work: Path, progress: Progress) -> Path | None:
    """Fetches the kernel from the user's release. Reports if it is missing, and returns None."""
    target = directory / name()
    locked_one = lock().built
    try:
        if release.address() is None:
            return None
        if locked_one is None or locked_one.name != target.name:
            raise release.ReleaseError(
                f"image.lock has no hash of {target.name}, so none is taken from a release "
                "(emulator/setup/lock-kernel writes it)"
            )
        release.fetch(
            target.name,
            work / "linux",
            most_bytes=locked_one.size_bytes,
            sha256=locked_one.sha256,
            progress=lambda of: progress("fetching the guest kernel", of),
        )
    except release.ReleaseError as error:
        report_error(f"the guest kernel is built here: {error}")
        return None
    (work / "linux").chmod(0o755)
    (work / "linux").rename(target)
    return target


def _build(directory: Path, work: Path, progress: Progress) -> Path:
    target = directory / name()
    log_path = directory / "build.log"
    try:
        root = image.ensure("kernel", progress)
        if shutil.disk_usage(work).free < NEEDED_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for file in (_PATCH, _CONFIG):
            shutil.copyfile(file, work / file.name)
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        make = ["make", "-C", SOURCE_PACKAGE, "ARCH=um", "RUSTC=false", jobs]
        with log_path.open("wb") as log:
            progress("unpacking the kernel source", 0.0)
            with image_root.inside(root, work=work) as inside:
                for argv in (
                    _unpacking(),
                    ["patch", "-d", SOURCE_PACKAGE, "-p1", "-i", f"../{_PATCH.name}"],
                    [*make, f"KCONFIG_ALLCONFIG=../{_CONFIG.name}", "allnoconfig"],
                ):
                    _call(inside(argv), log)
            _check_configuration(work / SOURCE_PACKAGE / ".config")
            with image_root.inside(root, work=work) as inside:
                _compile(inside([*make, "linux"]), log, progress)
                _call(inside(["strip", "-o", "linux", f"{SOURCE_PACKAGE}/linux"]), log)
        (work / "linux").chmod(0o755)
        (work / "linux").rename(target)
    except image_root.ImageError as error:
        raise KernelError(f"the guest kernel cannot be built: {error}") from error
    except subprocess.CalledProcessError as error:
        words = log_path.read_text(errors="replace").strip().splitlines()[-3:]
        raise KernelError(
            f"building the guest kernel failed, log in {log_path}:\n  " + "\n  ".join(words)
        ) from error
    if INSTALLED:  # An installed linklab does not change, so it builds the kernel only once.
        remove_image(root)
    return target


_ENVIRONMENT = {
    **image_root.ENVIRONMENT,
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "linklab",
    "KBUILD_BUILD_HOST": "linklab",
    "KBUILD_BUILD_VERSION": "1",
}
"""The build's environment, without the user's variables that would change the binary (ARCH,
KBUILD_*, LDFLAGS…)."""


def _call(argv: list[str], log: IO[bytes]) -> None:
    subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_ENVIRONMENT, check=True
    )


def _unpacking() -> list[str]:
    excluded = [f"--exclude={SOURCE_PACKAGE}/{folder}*.[ch]" for folder in _UNUSED]
    return ["tar", "-x", "-J", "-f", SOURCE_ARCHIVE, "--no-same-owner", "--wildcards", *excluded]


def _check_configuration(path: Path) -> None:
    got = dict(
        line.split("=", 1) for line in path.read_text().splitlines() if line.startswith("CONFIG_")
    )
    for line in _CONFIG.read_text().splitlines():
        if line.startswith("CONFIG_"):
            option, value = line.split("=", 1)
            if got.get(option, "n") != value:
                raise KernelError(f"{SOURCE_PACKAGE} did not take {line} of {_CONFIG.name}")


def _compile(argv: list[str], log: IO[bytes], progress: Progress) -> None:
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=_ENVIRONMENT,
    ) as make:
        try:
            for count, line in enumerate(make.stdout or (), 1):
                log.write(line)
                progress("building the guest kernel", min(1.0, count / EXPECTED_STEPS))
        except BaseException:
            make.terminate()
            raise
    if make.returncode != 0:
        raise subprocess.CalledProcessError(make.returncode, argv)
