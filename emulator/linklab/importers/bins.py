"""Divides the times of packets and probes into bins of one length. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from linklab.traces.trace import MAX_LENGTH_NS, MAX_LENGTH_S, NS_PER_S

_SET_BACK_NS: Final = NS_PER_S
"""How much earlier than the latest time a time may be."""


class Bins:
    """Tells which bins end as times come in. The first bin begins with the first time.

    `what` comes at these times, in errors. `order` says how they are to be. `fail` raises TraceError.

    Attributes:
        last_ns: the latest time; None before the first one.
    """

    def __init__(
        self, length_ns: int, what: str, order: str, fail: Callable[[str], NoReturn]
    ) -> None:
        self._length_ns = length_ns
        self._what = what
        self._order = order
        self._fail = fail
        self._first_ns = self._begin_ns = 0
        self.last_ns: int | None = None

    def ended(self, t_ns: int) -> tuple[int, ...]:
        """Takes in the next time. Returns the lengths of the bins that ended, of which only the first
        one may hold something: all later ones are joined. Raises TraceError."""
        if self.last_ns is None:
            self._first_ns = self._begin_ns = self.last_ns = t_ns
        if t_ns < self.last_ns - _SET_BACK_NS:
            self._fail(
                f"a {self._what} is {(self.last_ns - t_ns) / NS_PER_S:.3g} s earlier than the one "
                f"before; allowed: {self._order}"
            )
        self.last_ns = max(self.last_ns, t_ns)
        if self.last_ns - self._first_ns > MAX_LENGTH_NS:
            self._fail(f"is too long; allowed: up to {MAX_LENGTH_S} s")
        passed = (self.last_ns - self._begin_ns) // self._length_ns
        self._begin_ns += passed * self._length_ns
        if passed > 1:
            return self._length_ns, (passed - 1) * self._length_ns
        return (self._length_ns,) * passed

    @property
    def total_ns(self) -> int:
        """The time from the first to the last one."""
        return 0 if self.last_ns is None else self.last_ns - self._first_ns

    @property
    def rest_ns(self) -> int:
        """The length of the bin that has not ended."""
        return 0 if self.last_ns is None else self.last_ns - self._begin_ns
