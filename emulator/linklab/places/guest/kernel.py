"""Builds the guest's kernel from Debian's kernel source with Debian's compiler.

The kernel of the emulated machine is built in the same way (RECIPES).

Source and compiler are in an image (image.py), so the kernel is the same to the byte on every
machine. The cache keeps it. The cache key is a hash of configuration, patch, own sources and image.
Only a change of one of them builds the kernel again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from linklab.core import units
from linklab.core.error_report import report_error
from linklab.core.errors import LinklabError
from linklab.core.paths import DATA, INSTALLED, in_cache
from linklab.core.scratch import build_prefix, remove_image
from linklab.display.parts import Progress
from linklab.places.guest import image, image_root, made_once, release
from linklab.places.guest.locked import Built, lock

SOURCE_PACKAGE = "linux-source-7.2"
SOURCE_ARCHIVE = f"/usr/src/{SOURCE_PACKAGE}.tar.xz"
"""The path of the source in the image."""


@dataclass(frozen=True)
class KernelRecipe:
    """Says how a kernel is made of the source.

    Attributes:
        called: the kernel's name in messages.
        prefix: the start of its file name.
        folder: the directory of its kernel.config, its kernel.patch and, if it has any, its own
            sources.
        architecture: make's ARCH.
        product: the file that make builds.
        needed: the patterns of what is unpacked of the source. The patch takes the other folders out
            of the build.
        objects: the number of objects that a build compiles, for the progress line.
        work_bytes: the disk space for a build, without the image.
    """

    called: str
    prefix: str
    folder: Path
    architecture: str
    product: str
    needed: tuple[str, ...]
    objects: int
    work_bytes: int

    @property
    def config(self) -> Path:
        """The answers to the questions of the kernel's configuration."""
        return self.folder / "kernel.config"

    @property
    def patch(self) -> Path:
        """The changes of the source."""
        return self.folder / "kernel.patch"

    @property
    def sources(self) -> Path:
        """The directory of our own files, at their paths in the source. It may not exist."""
        return self.folder / "kernel_sources"


_HERE = Path(__file__).parent
GUEST = KernelRecipe(
    "guest kernel",
    "linux",
    _HERE,
    "um",
    "linux",
    needed=(
        *("Makefile", "Kbuild", "Kconfig", "*/Makefile*", "*/Kbuild*", "*/Kconfig*"),
        *("arch/um", "arch/x86", "include", "scripts", "init", "kernel", "ipc", "lib", "mm"),
        *("block", "certs", "crypto", "fs", "io_uring", "net", "security", "usr", "virt"),
        *("drivers/base", "drivers/char", "drivers/net/*.[ch]", "drivers/tty"),
    ),
    objects=732,
    work_bytes=600_000_000,
)
MACHINE = KernelRecipe(
    "emulated machine's kernel",
    "linux-machine",
    _HERE.parent / "emulated",
    "x86",
    "vmlinux",
    needed=("*",),
    objects=620,
    work_bytes=1_300_000_000,
)
"""The kernel of the emulated machine in which guests run (places/emulated)."""

RECIPES = (GUEST, MACHINE)

IN_WHEEL = DATA / "kernel"
"""Where a wheel for one platform has the kernels."""

_UNUSED = tuple(
    f"{folder}/*/*.[ch]"
    for folder in ("drivers/gpu/drm", "drivers/media", "drivers/net", "sound/soc")
)
"""Patterns of what is never unpacked, although a pattern of `needed` has it."""


class KernelError(LinklabError, RuntimeError):
    """The guest's kernel is not available. The message says what to do."""


def key(recipe: KernelRecipe = GUEST) -> str:
    """Returns the cache key of the kernel that the recipe's files and the image make."""
    digest = hashlib.sha256()
    image_name = image.path("kernel").name.encode()
    parts = [recipe.config.read_bytes(), recipe.patch.read_bytes(), image_name]
    for path in sorted(recipe.sources.rglob("*.[ch]")):
        parts += [path.relative_to(recipe.sources).as_posix().encode(), path.read_bytes()]
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def name(recipe: KernelRecipe = GUEST) -> str:
    """Returns the kernel's file name, in the cache and in a release."""
    return f"{recipe.prefix}-{key(recipe)}"


def cached(recipe: KernelRecipe = GUEST) -> Path | None:
    path = in_cache("kernel") / name(recipe)
    return path if path.exists() else None


def described(path: Path) -> Built:
    """Returns the line of image.lock that the kernel at `path` should have."""
    content = path.read_bytes()
    return Built(path.name, hashlib.sha256(content).hexdigest(), len(content))


def ensure(progress: Progress = lambda what, fraction: None, recipe: KernelRecipe = GUEST) -> Path:
    """Returns a kernel, by default the guest's; builds it if needed (about 4 min on two cores).

    Raises KernelError if the image is not available, or the build fails (the message names its
    log).
    """
    directory = in_cache("kernel")
    part = made_once.Part(
        called=f"the {recipe.called}",
        directory=directory,
        lock=directory / "lock",
        prefix=build_prefix(),
        left="build-*-*",
        needed_bytes=recipe.work_bytes,
        error=KernelError,
    )

    def make(work: Path) -> Path:
        return (
            _from_wheel(directory, work, recipe)
            or _fetch(directory, work, progress, recipe)
            or _build(directory, work, progress, recipe)
        )

    try:
        return made_once.ensure(part, lambda: cached(recipe), make, progress)
    except image_root.ImageError as error:
        raise KernelError(f"the {recipe.called} cannot be made: {error}") from error


def _from_wheel(directory: Path, work: Path, recipe: KernelRecipe) -> Path | None:
    """Takes the kernel that a wheel for one platform brings (emulator/setup/platform_wheel.py).

    Reports if it is not the one of image.lock. Returns None then, and if there is none.
    """
    packaged = IN_WHEEL / name(recipe)
    try:
        content = packaged.read_bytes()
    except OSError:
        return None
    expected = lock().built.get(packaged.name)
    if expected is None or hashlib.sha256(content).hexdigest() != expected.sha256:
        report_error(f"{packaged} does not have the SHA-256 that image.lock says: not used")
        return None
    (work / "linux").write_bytes(content)
    return _kept(work, directory / packaged.name)


def _kept(work: Path, target: Path) -> Path:
    (work / "linux").chmod(0o755)
    (work / "linux").rename(target)
    return target


def _fetch(directory: Path, work: Path, progress: Progress, recipe: KernelRecipe) -> Path | None:
    """Fetches the kernel from the user's release. Reports if it is missing, and returns None.

    Raises ImageError if no kernel can be built here.
    """
    target = directory / name(recipe)
    locked_one = lock().built.get(target.name)
    try:
        if release.address() is None:
            return None
        if locked_one is None:
            raise release.ReleaseError(
                f"image.lock has no hash of {target.name}, so none is taken from a release "
                "(emulator/setup/lock-kernel writes it)"
            )
        release.fetch(
            target.name,
            work / "linux",
            most_bytes=locked_one.size_bytes,
            sha256=locked_one.sha256,
            progress=lambda of: progress(f"fetching, {units.percent(of)}", 0.99 * of),
        )
    except release.ReleaseError as error:
        image_root.report_making(recipe.called, error)
        return None
    return _kept(work, target)


def _build(directory: Path, work: Path, progress: Progress, recipe: KernelRecipe) -> Path:
    target = directory / name(recipe)
    log_path = directory / "build.log"
    try:
        root = image.ensure("kernel", lambda what, of: progress(f"compiler: {what}", 0.25 * of))
        if shutil.disk_usage(work).free < recipe.work_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for file in (recipe.patch, recipe.config):
            shutil.copyfile(file, work / file.name)
        if recipe.sources.exists():
            shutil.copytree(recipe.sources, work / SOURCE_PACKAGE)
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        make = ["make", "-C", SOURCE_PACKAGE, f"ARCH={recipe.architecture}", "RUSTC=false", jobs]
        with log_path.open("wb") as log:
            patch = ["patch", "-d", SOURCE_PACKAGE, "-p1", "-i", f"../{recipe.patch.name}"]
            configure = [*make, f"KCONFIG_ALLCONFIG=../{recipe.config.name}", "allnoconfig"]
            with image_root.inside(root, work=work) as inside:
                for what, argv in (
                    ("unpacking the source", _unpacking(recipe)),
                    ("patching the source", patch),
                    ("configuring", configure),
                ):
                    progress(what, 0.25)
                    _call(inside(argv), log)
            _check_configuration(work / SOURCE_PACKAGE / ".config", recipe.config)
            with image_root.inside(root, work=work) as inside:
                _compile(inside([*make, recipe.product]), log, progress, recipe)
                made = f"{SOURCE_PACKAGE}/{recipe.product}"
                _call(inside(["strip", "-o", "linux", made]), log)
        _kept(work, target)
        progress("removing the source", 0.99)  # By the caller; takes a minute on a busy disk.
    except subprocess.CalledProcessError as error:
        words = log_path.read_text(errors="replace").strip().splitlines()[-3:]
        raise KernelError(
            f"building the {recipe.called} failed, log in {log_path}:\n  " + "\n  ".join(words)
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


def _unpacking(recipe: KernelRecipe) -> list[str]:
    def words(patterns: tuple[str, ...], before: str = "") -> str:
        return " ".join(f"'{before}{SOURCE_PACKAGE}/{pattern}'" for pattern in patterns)

    # tar's own -J decompresses on one core.
    unpack = (
        f"xz -T0 -dc {SOURCE_ARCHIVE} | tar -x -f - --no-same-owner --wildcards "
        f"{words(_UNUSED, '--exclude=')} {words(recipe.needed)}"
    )
    return ["bash", "-o", "pipefail", "-c", unpack]


def _check_configuration(path: Path, wanted: Path) -> None:
    got = dict(
        line.split("=", 1) for line in path.read_text().splitlines() if line.startswith("CONFIG_")
    )
    for line in wanted.read_text().splitlines():
        if line.startswith("CONFIG_"):
            option, value = line.split("=", 1)
            if got.get(option, "n") != value:
                raise KernelError(f"{SOURCE_PACKAGE} did not take {line} of {wanted.name}")


def _compile(argv: list[str], log: IO[bytes], progress: Progress, recipe: KernelRecipe) -> None:
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=_ENVIRONMENT,
    ) as make:
        try:
            count = 0
            for line in make.stdout or ():
                log.write(line)
                count += line.split()[:1] in ([b"CC"], [b"AS"])
                count = min(count, recipe.objects)
                done = count / recipe.objects
                progress(f"compiling, {count} of {recipe.objects} objects", 0.3 + 0.69 * done)
        except BaseException:
            make.terminate()
            raise
    if make.returncode != 0:
        raise subprocess.CalledProcessError(make.returncode, argv)
