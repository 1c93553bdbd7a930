"""The guest kernel: built from Debian's kernel source, kept in the cache.

The cache key is the configuration, the patch and the source's version, so a change
to any of them builds anew and nothing else does.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from linklab.core.locks import locked
from linklab.core.paths import cache_dir
from linklab.core.scratch import build_prefix

SOURCE_PACKAGE = "linux-source-6.12"
SOURCE_ARCHIVE = Path("/usr/src") / f"{SOURCE_PACKAGE}.tar.xz"
BUILD_PACKAGES = (
    SOURCE_PACKAGE,
    "gcc",
    "make",
    "flex",
    "bison",
    "bc",
    "xz-utils",
    "patch",
    "libc6-dev",
)

EXPECTED_STEPS = 1200
"""Compiler lines of one build, for the progress bar."""

_HERE = Path(__file__).parent
_CONFIG = _HERE / "kernel.config"
_PATCH = _HERE / "kernel.patch"

_UNUSED = ("drivers/gpu/drm/*/", "drivers/net/ethernet/*/", "drivers/media/*/", "sound/soc/*/")
"""Folders whose C files no UML kernel needs: a third of the archive."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of it that is done."""


class KernelError(RuntimeError):
    """The guest kernel cannot be had; the message says what to do."""


def source_version() -> str:
    """Version of the installed source package; KernelError if it is missing."""
    try:
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", SOURCE_PACKAGE],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise KernelError("the guest kernel is built from a Debian package: no dpkg here") from None
    if done.returncode != 0 or not SOURCE_ARCHIVE.exists():
        raise KernelError(
            f"the guest kernel is not built and its source is missing: "
            f"apt-get install {' '.join(BUILD_PACKAGES)} (or `make setup`)"
        )
    return done.stdout.strip()


def key(version: str) -> str:
    """The cache key of the kernel that this package's files and `version` make."""
    digest = hashlib.sha256()
    for part in (_CONFIG.read_bytes(), _PATCH.read_bytes(), version.encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def cached() -> Path | None:
    """The kernel in the cache, or None; where the source package is gone, the newest one."""
    directory = cache_dir() / "kernel"
    try:
        path = directory / f"linux-{key(source_version())}"
        return path if path.exists() else None
    except KernelError:
        kernels = sorted(directory.glob("linux-*"), key=lambda p: p.stat().st_mtime)
        return kernels[-1] if kernels else None


def ensure(progress: Progress = lambda what, fraction: None) -> Path:
    """The guest kernel, built if need be (about four minutes on two cores).

    Raises KernelError when the machine is not x86-64 (there is no UML elsewhere),
    a tool is missing or the build fails (the message names its log).
    """
    if platform.machine() != "x86_64":
        raise KernelError(
            f"User Mode Linux needs an x86-64 machine, this is {platform.machine()}: "
            "use --place host"
        )
    kernel = cached()
    if kernel is not None:
        return kernel
    directory = cache_dir() / "kernel"
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / "lock"):
        kernel = cached()
        if kernel is not None:
            return kernel
        return _build(directory, progress)


def _build(directory: Path, progress: Progress) -> Path:
    version = source_version()
    target = directory / f"linux-{key(version)}"
    log_path = directory / "build.log"
    work = Path(tempfile.mkdtemp(prefix=build_prefix(), dir=directory))
    try:
        with log_path.open("wb") as log:
            progress("unpacking the kernel source", 0.0)
            _unpack(work, log)
            source = work / SOURCE_PACKAGE
            _call(["patch", "-p1", "-i", str(_PATCH)], source, log)
            make = ["make", "ARCH=um", "RUSTC=false", f"-j{len(os.sched_getaffinity(0))}"]
            _call([*make, f"KCONFIG_ALLCONFIG={_CONFIG}", "allnoconfig"], source, log)
            _check_configuration(source / ".config")
            _compile([*make, "linux"], source, log, progress)
            _call(["strip", "-o", str(work / "linux"), str(source / "linux")], source, log)
        (work / "linux").chmod(0o755)
        (work / "linux").rename(target)
    except subprocess.CalledProcessError as error:
        words = log_path.read_text(errors="replace").strip().splitlines()[-3:]
        raise KernelError(
            f"building the guest kernel failed ({' '.join(error.cmd[:3])}), "
            f"log in {log_path}:\n  " + "\n  ".join(words)
        ) from error
    except FileNotFoundError as error:
        raise KernelError(
            f"building the guest kernel needs {error.filename}: "
            f"apt-get install {' '.join(BUILD_PACKAGES)}"
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _environment() -> dict[str, str]:
    """Nothing of the user's that would change the binary (ARCH, KBUILD_*, LDFLAGS…)."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
        "KBUILD_BUILD_USER": "linklab",
        "KBUILD_BUILD_HOST": "linklab",
        "KBUILD_BUILD_VERSION": "1",
    }


def _call(argv: list[str], directory: Path, log: object) -> None:
    subprocess.run(
        argv,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,  # type: ignore[call-overload]
        env=_environment(),
        check=True,
    )


def _unpack(work: Path, log: object) -> None:
    excluded = [f"--exclude={SOURCE_PACKAGE}/{folder}*.[ch]" for folder in _UNUSED]
    _call(["tar", "-x", "-J", "-f", str(SOURCE_ARCHIVE), "--wildcards", *excluded], work, log)


def _check_configuration(path: Path) -> None:
    got = dict(
        line.split("=", 1) for line in path.read_text().splitlines() if line.startswith("CONFIG_")
    )
    for line in _CONFIG.read_text().splitlines():
        if line.startswith("CONFIG_"):
            name, value = line.split("=", 1)
            if got.get(name, "n") != value:
                raise KernelError(f"{SOURCE_PACKAGE} did not take {line} of {_CONFIG.name}")


def _compile(argv: list[str], source: Path, log: object, progress: Progress) -> None:
    with subprocess.Popen(
        argv,
        cwd=source,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=_environment(),
        text=True,  # type: ignore[call-overload]
    ) as make:
        try:
            for count, line in enumerate(make.stdout or (), 1):
                log.write(line.encode())  # type: ignore[attr-defined]
                progress("building the guest kernel", min(1.0, count / EXPECTED_STEPS))
        except BaseException:
            make.terminate()
            raise
    if make.returncode != 0:
        raise subprocess.CalledProcessError(make.returncode, argv)
