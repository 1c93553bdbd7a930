"""Another root for the user's own programs on a host of the lab.

In the guest, whose root is its image, they run from the files of the machine outside, with that
machine's libraries. A mount namespace has that root and not chroot(2): who enters another namespace
from there, as a lab inside this lab does, would be back in the image.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from linklab.lab.network.hosts import Host

_MOUNTS = "/run/linklab/mounts-"
"""How the mount namespace of a host is called. In the guest, which has one lab."""

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
"""Makes the first word the root (pivot_root(2), "pivot_root(".", ".")"), with the /sys of the host
of the lab, which has its network devices. Not by mount(8) and umount(8), which are set-user-ID:
where the guest runs in a user namespace, root's files are nobody's, and so would be their rights."""


def at(root: Path, host: Host, directory: Path) -> list[str]:
    """The words before a command's that have it run on `host` in `root` and, there, `directory`.

    Raises LabError.
    """
    if root == Path("/"):
        return []
    mounts = f"{_MOUNTS}{host.name}"
    host.run(["touch", mounts])
    changed = [sys.executable, "-I", "-S", "-c", _ENTER, str(root)]
    host.run(["unshare", f"--mount={mounts}", "--propagation=private", "--", *changed])
    # By its path: the program's PATH is the user's.
    return [shutil.which("nsenter") or "nsenter", f"--mount={mounts}", f"--wdns={directory}", "--"]
