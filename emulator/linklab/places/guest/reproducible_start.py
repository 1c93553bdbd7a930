"""Starts every run in virtual time from the same state, whatever the guest did before.

In virtual time many failed system calls without a wait take 1 µs each (Linux arch/um,
`handle_syscall` and `kernel.patch`). The boot makes a different number of such calls on each
machine, because shell, linker and Python look for files that are not there. So the time at which
the lab is ready differs, and so do the process numbers and the random numbers drawn.

Each of them changes a download: the server signs with another random number, the client's
goroutines run in another order, or a packet meets a timer later. The scenario `tm` differed by up
to 2.5 %.

`kernel.patch` keeps time in whole ticks, and lets a program reset the random number generator. This
module uses both.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

READY_EVERY_S = 10
"""A measurement starts at a multiple of this time. A lab is ready within some seconds of virtual
time, so the multiple is the same on every machine. The wait costs no real time."""

LAST_PID = 1000
"""New processes are numbered from here on; a lab needs fewer until it is ready. OpenSSL mixes its
process number into its random numbers."""

_RNDCLEARPOOL = 0x5206
"""From linux/random.h. It has no effect on kernels without `kernel.patch`."""


def align() -> None:
    """Waits for the next multiple of `READY_EVERY_S`, then resets random and process numbers.

    The caller must be root in the guest. It starts the measured process right afterwards.
    """
    time.sleep(READY_EVERY_S - time.monotonic() % READY_EVERY_S)
    with Path("/dev/urandom").open("rb") as generator:
        fcntl.ioctl(generator, _RNDCLEARPOOL)
    Path("/proc/sys/kernel/ns_last_pid").write_text(f"{LAST_PID}\n")
