"""Gives the user's own programs on a host of the lab another root.

The guest's root is its image. There the user's programs run from the host machine's files, with that
machine's libraries. The root is that of a mount namespace. After chroot(2) a program that enters
another namespace, as a lab inside this lab does, would be back in the image.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from linklab.lab.network.hosts import Host

_MOUNTS = "/run/linklab/mounts-"
"""The path of a host's mount namespace in the guest, which has one lab."""

_ENTER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def done(call, *words):
    if getattr(libc, call)(*words) != 0:
        sys.exit(f"{call}: {os.strerror(ctypes.get_errno())}")
root = os.fsencode(sys.argv[1])
done("mount", b"/sys", root + b"/sys", None, ctypes.c_ulong(BIND), None)
os.chdir(root)
done("pivot_root", b".", b".")
done("umount2", b".", DETACH)
""".replace("BIND", str(4096 | 16384)).replace("DETACH", str(2))
"""Makes the first argument the root (pivot_root(2), "pivot_root(".", ".")"), with the /sys of the
lab's host, which has its network devices. mount(8) and umount(8) do not work here. They are
set-user-ID, and in a guest within a user namespace root's files belong to nobody."""


def at(root: Path, host: Host, directory: Path) -> list[str]:
    """Returns the words before a command that run it on `host` in `root`, from `directory` in there.

    Raises LabError.
    """
    if root == Path("/"):
        return []
    mounts = f"{_MOUNTS}{host.name}"
    host.run(["touch", mounts])
    changed = [sys.executable, "-I", "-S", "-c", _ENTER, str(root)]
    host.run(["unshare", f"--mount={mounts}", "--propagation=private", "--", *changed])
    # By its path, because the program's PATH is the user's.
    return [shutil.which("nsenter") or "nsenter", f"--mount={mounts}", f"--wdns={directory}", "--"]
