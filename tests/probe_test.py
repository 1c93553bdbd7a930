"""The probe of the host place."""

import shlex
import sys

from conftest import Linklab

PROBE = (sys.executable, "-m", "linklab.lab.shaping.probe")


def test_the_guest_lacks_nothing(linklab: Linklab) -> None:
    done = linklab("exec", "static-80-50", "--", "sh", "-c", f"unshare --net {shlex.join(PROBE)}")
    assert (done.code, done.out) == (0, ""), done.err


def test_settings_that_cannot_be_written_are_said(linklab: Linklab) -> None:
    """As in a container without `emulator/compose.host.yaml`."""
    script = "mount -t proc -o ro none /proc && unshare --net " + shlex.join(PROBE)
    done = linklab("exec", "static-80-50", "--", "unshare", "--mount", "sh", "-c", script)
    assert done.code == 1
    assert "sysctl net.ipv4.ip_forward=1: Read-only file system" in done.err
