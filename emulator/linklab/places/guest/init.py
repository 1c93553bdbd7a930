"""Is the guest's first program: mounts the file systems, then executes the run directory.

The image's Python runs it. A tmpfs is at /run already, and the run directory at /run/linklab/run.
The program mounts what a Linux system expects, and the host's files at /host. If it fails, the
kernel panics.

boot.py copies it into the run directory, because linklab cannot be imported before /host is
mounted. One Python process does everything, because each program start takes a guest 5 to 20 ms.
"""

from __future__ import annotations

import ctypes
import gc
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
"""The directories of the image's Python packages."""

PACKAGES = f"{_BASE}/python"
"""The guest's directory for linklab, without the host's other Python packages."""

MARK_BYTES = 32
"""The length of the fingerprint at the start of a bundle (bundle.py)."""


def take_pages_at_once() -> None:
    """Makes the kernel map memory when it is allocated, not page by page at the first access.

    User Mode Linux takes ten times as long for page faults.
    """
    _LIBC.mlockall(_ALL_PAGES_NOW)


def mount(source: str, place: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Calls mount(2). Raises OSError."""
    words = [os.fsencode(word) or None for word in (source, place, kind)]
    if _LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {kind or source}: {os.strerror(error)}", place)


def unmount(place: str) -> None:
    """Calls umount(2). Raises OSError."""
    if _LIBC.umount2(os.fsencode(place), 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"umount: {os.strerror(error)}", place)


def _over(name: str, place: str) -> None:
    """Mounts the host's directory `name` at `place`, with a tmpfs over it that takes the writes."""
    lower, work = f"{_HOST}/{name}", f"{_BASE}/over/{name}"
    if not os.path.isdir(lower):
        lower = f"{_BASE}/over/none"
    options = f"lowerdir={lower},upperdir={work}/upper,workdir={work}/work"
    mount(name, place, "overlay", 0, options)


def mount_all() -> None:
    """Mounts the guest's file systems.

    Afterwards /host has the host's files, and /tmp, /dev/shm and /run are in memory.
    """
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
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{descriptor}", f"/dev/{name}")
    if not os.path.lexists("/dev/ptmx"):
        os.symlink("pts/ptmx", "/dev/ptmx")
    mount(f"{_BASE}/run", f"{new}/linklab/run", "", _MOVE)
    mount(new, "/run", "", _MOVE)
    # The root of the user's own programs is /host, so these appear there, too.
    for name in _SYSTEM:
        mount(f"/{name}", f"{_HOST}/{name}", "", BIND | _RECURSIVE)


def name_user(user: int, group: int) -> None:
    """Gives a user other than root a name in the guest. H2O runs as this user to read the payload."""
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
        self._index, self._functions = marshal.loads(content[4 : 4 + head])
        self._codes = content[4 + head :]

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Returns how a module is loaded; None if it is not in the bundle."""
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
        """Returns None, for a default module."""

    def exec_module(self, module: ModuleType) -> None:
        _, _, at, size = self._index[module.__name__]
        exec(marshal.loads(self._codes[at : at + size]), module.__dict__)
        if module.__name__ == "dataclasses":  # It would compile 600 functions.
            module.__dict__["exec"] = self._make

    def _make(self, text: str, *names: dict[str, object]) -> None:
        """Runs a function's text as `exec` does, or its code if the bundle has it."""
        exec(self._functions.get(text, text), *names)


def execute(package: str, session: str, bundle: str | None) -> None:
    """Calls `main` of the module `session` of the package `linklab`.

    `package` is its path on the host. Other packages of the host's Python cannot be imported.
    `bundle` is the host's path of the bundle with the modules.
    """
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
    gc.disable()  # All that is imported stays.
    module = importlib.import_module(session)
    gc.freeze()
    gc.enable()
    module.main()
