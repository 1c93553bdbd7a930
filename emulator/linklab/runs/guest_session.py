"""Executes one run inside the guest after its init, then powers the guest off."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from linklab.core.paths import GUEST_EXIT_FILE, GUEST_HOST_ROOT, GUEST_RUN_DIR
from linklab.runs import job
from linklab.runs.execution import main as execute

RB_POWER_OFF = 0x4321FEDC

PANIC_ON_OOM = Path("/proc/sys/vm/panic_on_oom")
"""If memory runs out, the guest ends at once and its console says why (boot.py). Otherwise the
kernel would kill one program after the other, the server first, and the rest might wait for ever.
"""

_TCP = Path("/proc/sys/net/ipv4")

WRITE_BACK_CS = 10
"""Hundredths of a second after which written files reach the host on the real clock, where they are
watched while they grow. The kernel's defaults are 5 s to 30 s (sysctl vm.dirty_*)."""


def main() -> None:
    """Executes the run directory, writes the exit code to `guest-exit`, and ends the guest."""
    PANIC_ON_OOM.write_text("1\n")
    # Hosts are further network namespaces. Theirs may be only what the first one allows.
    known = Path(_TCP, "tcp_available_congestion_control").read_text()
    Path(_TCP, "tcp_allowed_congestion_control").write_text(known)
    if job.read(GUEST_RUN_DIR).clock == "real":
        for name in ("dirty_writeback_centisecs", "dirty_expire_centisecs"):
            Path("/proc/sys/vm", name).write_text(f"{WRITE_BACK_CS}\n")
    code = execute([str(GUEST_RUN_DIR), str(GUEST_HOST_ROOT)])
    Path(GUEST_RUN_DIR, GUEST_EXIT_FILE).write_text(f"{code}\n")
    os.sync()
    ctypes.CDLL(None).reboot(RB_POWER_OFF)
