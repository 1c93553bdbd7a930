"""Another root for the user's own programs on a host of the lab.

In the guest, whose root is its image, they run from the files of the machine outside, with that
machine's libraries. A mount namespace has that root and not chroot(2): who enters another namespace
from there, as a lab inside this lab does, would be back in the image.
"""

from __future__ import annotations

from pathlib import Path

from linklab.lab.network import Host

_MOUNTS = "/run/linklab/mounts"
"""The mount namespace's name. In the guest, which has one lab."""

_SYS = "mount --rbind /sys $0/sys"
"""The host's own, with its network devices."""

_ENTER = "cd $0 && pivot_root . . && umount -l ."
"""Makes $0 the root (pivot_root(2), "pivot_root(".", ".")")."""


def at(root: Path, host: Host, directory: Path) -> list[str]:
    """The words before a command's that have it run on `host` in `root` and, there, `directory`.

    Raises LabError.
    """
    if root == Path("/"):
        return []
    host.run(["touch", _MOUNTS])
    changed = ["sh", "-c", f"{_SYS} && {_ENTER}", str(root)]
    host.run(["unshare", f"--mount={_MOUNTS}", "--propagation=private", "--", *changed])
    return ["nsenter", f"--mount={_MOUNTS}", f"--wdns={directory}", "--"]
