"""The guest's first program, run by the image's Python with memory at /run and the run directory
already mounted at /run/linklab/run: mounts what a Linux system expects, and the host's files at
/host, then executes the run directory. Where it fails the kernel panics.

It is copied into the run directory (boot.py): linklab itself can be imported once /host is there.
One Python does it all, because every program that a guest starts costs it 5 to 20 ms.
"""

from __future__ import annotations

import ctypes
import importlib
import marshal
import os
import struct
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_LIBC = ctypes.CDLL(None, use_errno=True)
_READ_ONLY, BIND, _MOVE, _RECURSIVE = 1, 4096, 8192, 16384  # linux/mount.h
_ALL_PAGES_NOW = 1 | 2  # MCL_CURRENT | MCL_FUTURE

_BASE = "/run/linklab"
_HOST = "/host"
_SYSTEM = ("proc", "sys", "dev", "tmp", "run")

SITE = ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")
"""Where the image has Python packages."""

PACKAGES = f"{_BASE}/python"
"""Where the guest has linklab, and nothing else of the host's Python."""

MARK_BYTES = 32
"""What a bundle begins with (bundle.py)."""


def take_pages_at_once() -> None:
    """Has the kernel hand out memory when it is asked for, not page by page at the first touch,
    which takes User Mode Linux ten times as long."""
    _LIBC.mlockall(_ALL_PAGES_NOW)


def mount(source: str, place: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError."""
    words = [os.fsencode(word) or None for word in (source, place, kind)]
    if _LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {kind or source}: {os.strerror(error)}", place)


def unmount(place: str) -> None:
    """umount(2). Raises OSError."""
    if _LIBC.umount2(os.fsencode(place), 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"umount: {os.strerror(error)}", place)


def _over(name: str, place: str) -> None:
    """Mounts at `place` the host's directory of this name, and memory over it that is written."""
    lower, work = f"{_HOST}/{name}", f"{_BASE}/over/{name}"
    if not os.path.isdir(lower):
        lower = f"{_BASE}/over/none"
    options = f"lowerdir={lower},upperdir={work}/upper,workdir={work}/work"
    mount(name, place, "overlay", 0, options)


def mount_all() -> None:
    """Mounts the guest's file systems; afterwards /host shows the host's files, and what is written
    to /tmp, /dev/shm and /run stays in memory."""
    mount("proc", "/proc", "proc")
    new = f"{_BASE}/new"
    for name in (
        "new",
        "over/none",
        "over/tmp/work",
        "over/tmp/upper",
        "over/dev/shm/work",
        "over/dev/shm/upper",
        "over/run/work",
        "over/run/upper/linklab/run",
        "over/run/upper/linklab/home",
        "over/run/upper/linklab/python",
        "over/run/upper/lock",
        "over/run/upper/netns",
    ):
        os.makedirs(f"{_BASE}/{name}", exist_ok=True)
    for name in ("over/tmp/upper", "over/dev/shm/upper"):
        os.chmod(f"{_BASE}/{name}", 0o1777)
    mount("none", _HOST, "hostfs", _READ_ONLY, "/")
    mount("sysfs", "/sys", "sysfs")
    mount("devtmpfs", "/dev", "devtmpfs")
    for name in ("pts", "shm"):
        os.makedirs(f"/dev/{name}", exist_ok=True)
    mount("devpts", "/dev/pts", "devpts", 0, "gid=5,mode=620,ptmxmode=666")
    _over("tmp", "/tmp")
    _over("dev/shm", "/dev/shm")
    _over("run", new)
    os.symlink("/proc/self/fd", "/dev/fd")
    if not os.path.lexists("/dev/ptmx"):
        os.symlink("pts/ptmx", "/dev/ptmx")
    mount(f"{_BASE}/run", f"{new}/linklab/run", "", _MOVE)
    mount(new, "/run", "", _MOVE)
    # For the user's own programs, whose root is /host, these are the same.
    for name in _SYSTEM:
        mount(f"/{name}", f"{_HOST}/{name}", "", BIND | _RECURSIVE)


def name_user(user: int, group: int) -> None:
    """Gives a user who is not root a name in the guest: H2O becomes who can read the payload."""
    if user == 0:
        return
    path = f"{_BASE}/passwd"
    with open("/etc/passwd") as known, open(path, "w") as file:
        file.write(f"{known.read()}linklab:x:{user}:{group}::/:/bin/sh\n")
    mount(path, "/etc/passwd", "", BIND)


class Bundle:
    """Imports modules from the file that bundling.py writes."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            file.seek(MARK_BYTES)
            content = memoryview(file.read())
        (head,) = struct.unpack_from("=I", content)
        self._index = marshal.loads(content[4 : 4 + head])
        self._codes = content[4 + head :]

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """How a module is loaded; None where it is not in the file."""
        found = self._index.get(name)
        if found is None:
            return None
        path, is_package, _, _ = found
        spec = ModuleSpec(name, self, origin=path, is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [path.rpartition("/")[0]]
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """Any module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs a module's code."""
        _, _, at, size = self._index[module.__name__]
        exec(marshal.loads(self._codes[at : at + size]), module.__dict__)


def execute(package: str, session: str, bundle: str | None) -> None:
    """Calls `main` of a module of the package `linklab` that lies at this path of the host's; nothing
    else of the host's Python can be imported. `bundle` is where on the host that and all it imports
    lie in one file."""
    os.environ.update(
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME=f"{_BASE}/home",
        LANG="C.UTF-8",
    )
    os.symlink(f"{_HOST}{package}", f"{PACKAGES}/linklab")
    os.chdir("/tmp")
    sys.path[:] = [PACKAGES, *sys.path, *SITE]
    if bundle is not None:
        sys.meta_path.insert(0, Bundle(f"{_HOST}{bundle}"))
    importlib.import_module(session).main()
