"""The probe of the host place: it names exactly what a kernel lacks."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from conftest import Linklab, environment, ran
from linklab.lab.shaping import probe

CONFIGURATION = Path("/proc/config.gz")
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


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
@pytest.mark.skipif(not CONFIGURATION.exists(), reason="this kernel does not say what it has")
def test_this_machine_s_kernel_lacks_what_its_configuration_leaves_out() -> None:
    missing = probe.left_out()
    done = ran(["unshare", "--net", *PROBE], env=environment())
    said = (
        f"this kernel lacks {', '.join(missing)} (root may try: modprobe -a {' '.join(missing)})\n"
    )
    assert (done.returncode, done.stderr) == ((1, said) if missing else (0, ""))
