"""Provides a timer on an absolute monotonic time, as a file descriptor (timerfd_create(2)).

select(2) and poll(2) may be late by a thousandth of their timeout (Linux fs/select.c,
select_estimate_accuracy). This timer is not.
"""

from __future__ import annotations

import ctypes
import os

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Setting(ctypes.Structure):
    """Mirrors struct itimerspec: the interval (unused) and the time, each in seconds and ns."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


def _check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"timerfd: {os.strerror(error)}")
    return result


class Timer:
    """A timer whose descriptor is readable from its set time on."""

    def __init__(self) -> None:
        self._descriptor = _check(_libc.timerfd_create(CLOCK_MONOTONIC, os.O_CLOEXEC))

    def fileno(self) -> int:
        """Returns the descriptor."""
        return self._descriptor

    def set(self, monotonic_ns: int) -> None:
        """Sets a time of `time.monotonic_ns`. A past time makes the descriptor readable at once."""
        seconds, nanoseconds = divmod(max(1, monotonic_ns), 1_000_000_000)
        setting = _Setting(0, 0, seconds, nanoseconds)
        _check(
            _libc.timerfd_settime(self._descriptor, TFD_TIMER_ABSTIME, ctypes.byref(setting), None)
        )

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self._descriptor)
