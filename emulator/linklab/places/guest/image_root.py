"""Runs programs with an image as their root: in namespaces (bwrap(1)), as root also by chroot(2)."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.core.errors import LinklabError
from linklab.places.guest import release, user_namespaces

ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""The first words of a command that is killed when this process ends."""


class ImageError(LinklabError, RuntimeError):
    """The image is not available. The message says what to do."""


def call(root: Path, argv: Sequence[str], *, writable: bool) -> None:
    """Runs a program of an image to its end, with the image as its root.

    Raises ImageError with the program's last output if it fails.
    """
    with inside(root, writable=writable) as command:
        done = subprocess.run(
            command(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=ENVIRONMENT,
        )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or [
            f"it ended with {done.returncode}"
        ]
        raise ImageError(f"{argv[0]} failed in the image: {said[-1]}")


ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
"""The environment of programs in an image. It has no variable of the user's."""


WORK = "/tmp/work"
"""The working directory of programs in an image."""

Command = Callable[[Sequence[str]], list[str]]
"""A function from a command for the image to the command to run here."""


_RUN_X86_64 = tuple(f"/proc/sys/fs/binfmt_misc/{name}" for name in ("qemu-x86_64", "rosetta"))
"""Entries of binfmt_misc with which other processors run x86-64 programs."""


def _refused() -> str:
    allowed = user_namespaces.remedy()
    how = f" (as root: {allowed})" if allowed else ", as in a container with more rights"
    return (
        f"making the guest needs user namespaces, which this machine refuses: allow them{how}, "
        f"make it as root, or take image and kernel from a release ({release.RELEASE})"
    )


def obstacle() -> str | None:
    """Returns why no image can be made here, or None."""
    if platform.machine() != "x86_64" and not any(map(os.path.exists, _RUN_X86_64)):
        return (
            f"making the guest runs x86-64 programs, and this machine is {platform.machine()}: "
            f"take image and kernels from a release ({release.RELEASE}), or install "
            "qemu-user-binfmt, or use --place host"
        )
    return _refusal()


def report_making(what: str, error: Exception) -> None:
    """Reports that `what` is made here, because a release does not give it.

    Raises ImageError if it cannot be made here.
    """
    refused = obstacle()
    if refused is not None:
        raise ImageError(f"{error}; {refused}") from error
    report_error(f"the {what} is made here: {error}")


@functools.cache
def _refusal() -> str | None:
    """Returns why images' programs cannot run in namespaces, or None.

    It tries with this machine's programs, because there may be no image yet. So the user learns it
    before a minute of work.
    """
    if os.geteuid() == 0:
        return None
    bubblewrap = shutil.which("bwrap")
    words = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    if bubblewrap is not None:
        words = [bubblewrap, *_NAMESPACES, "/", "/", *_DEVICES, "--", "true"]
    try:
        return None if user_namespaces.refused(words) is None else _refused()
    except OSError:
        return None  # A later step reports it.


_NAMESPACES = ("--unshare-pid", "--unshare-net", "--ro-bind")
_DEVICES = ("--dev", "/dev", "--proc", "/proc")


@contextlib.contextmanager
def inside(root: Path, *, writable: bool = False, work: Path | None = None) -> Iterator[Command]:
    """Yields a function that makes a command run with the image as its root.

    `work` appears at WORK, where programs run and may write. During the block it may be absent from
    its own path. Programs run in namespaces. If a container allows none, root uses chroot(2).
    Raises ImageError if this machine allows neither.
    """
    if has_namespaces(root):
        words = [*bubblewrap(root), "--die-with-parent", "--unshare-pid", "--unshare-net"]
        words += ["--bind" if writable else "--ro-bind", str(root), "/"]
        words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        if work is not None:
            words += ["--bind", str(work), WORK, "--chdir", WORK]
        yield lambda argv: [*words, "--", *argv]
    elif os.geteuid() != 0:
        raise ImageError(_refused())
    else:
        with _with_devices(root), _moved(work, root / WORK.lstrip("/")):
            enter = [
                *ENDS_WITH_US,
                "chroot",
                str(root),
                "/usr/bin/sh",
                "-c",
                'cd "$0" && exec "$@"',
            ]
            yield lambda argv: [*enter, WORK if work else "/", *argv]


@contextlib.contextmanager
def _moved(work: Path | None, there: Path) -> Iterator[None]:
    if work is None:
        yield
        return
    shutil.rmtree(there, ignore_errors=True)  # It is left by a killed process.
    work.rename(there)
    try:
        yield
    finally:
        there.rename(work)


@contextlib.contextmanager
def _with_devices(root: Path) -> Iterator[None]:
    """Makes the devices that programs expect (null(4)), for the time of the block."""
    made = []
    try:
        for name, minor in (("null", 3), ("zero", 5), ("urandom", 9)):
            path = root / "dev" / name
            path.unlink(missing_ok=True)  # It is left by a killed process.
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            except PermissionError as error:
                raise ImageError(
                    "making the guest needs namespaces, or as root the right to make device files, "
                    f"which this machine refuses; take image and kernel from a release "
                    f"({release.RELEASE})"
                ) from error
            made.append(path)
        yield
    finally:
        for path in made:
            path.unlink()


def bubblewrap(root: Path) -> list[str]:
    """Returns the first words of bwrap(1): the host's, else that of the image at `root`."""
    found = shutil.which("bwrap")
    if found is not None:
        return [found]
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [
        str(libraries / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(root / "usr/bin/bwrap"),
    ]


@functools.cache
def has_namespaces(root: Path) -> bool:
    """Tells whether programs of an image can run in namespaces here. It is tried once."""
    words = [*bubblewrap(root), *_NAMESPACES, str(root), "/", *_DEVICES, "--", "/usr/bin/true"]
    try:
        return user_namespaces.refused(words) is None
    except OSError:
        return False
