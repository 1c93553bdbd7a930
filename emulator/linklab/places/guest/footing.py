"""Gives every run in virtual time the same footing, whatever the guest did before it.

In virtual time a look at the clock takes 256 ns and a failed system call 1 µs (Linux arch/um,
`timer_read` and `handle_syscall`). So when a lab is ready, how many processes there were by then
and how many random numbers were drawn, hangs on the machine: on what its shell, linker and Python
look for in vain. A server that signs with another random number, a client whose goroutines run in
another order, a packet that meets a timer 256 ns later: and the download takes another course.
`tm` came out up to 2.5 % apart. `kernel.patch` keeps time in whole ticks and lets the generator of
random numbers begin anew; here both are put to use.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

READY_EVERY_S = 10
"""What is measured begins at a multiple of this. A lab is ready within some seconds of virtual
time, and waiting for the next multiple costs none of ours: so it is the same on every machine."""

LAST_PID = 1000
"""Process numbers go on from here: more than a lab takes until it is ready. OpenSSL mixes its
own into what it draws."""

_RNDCLEARPOOL = 0x5206
"""linux/random.h. On other kernels it does nothing."""


def even() -> None:
    """Waits for the next multiple of `READY_EVERY_S`; then random and process numbers begin anew.

    For root in the guest, just before a process that is measured is started.
    """
    time.sleep(READY_EVERY_S - time.monotonic() % READY_EVERY_S)
    with Path("/dev/urandom").open("rb") as generator:
        fcntl.ioctl(generator, _RNDCLEARPOOL)
    Path("/proc/sys/kernel/ns_last_pid").write_text(f"{LAST_PID}\n")
