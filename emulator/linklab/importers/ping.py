"""Reads the logs of ping: of Linux (iputils, busybox) and macOS, in any language.

Where `ping -D` wrote times, a probe was sent its round-trip time before. Other logs have no times.
Then probes are `--every` S seconds apart, 1 s by default as in ping. The last line of Linux tells how
long the test took, and a wrong distance is refused.

A number that is missing, a timeout or an error is a lost probe. Replies may come in any order. Of
several replies to a probe, the first counts. A log that has its first line begins with probe 1, or 0
on macOS. Its last line tells how many there were, also after the last reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NoReturn

from linklab.importers import probes
from linklab.importers.format import Format
from linklab.importers.probes import Probe
from linklab.traces.lines import Lines
from linklab.traces.trace import MAX_LENGTH_NS, MAX_LENGTH_S, NS_PER_S, TraceFile

EVERY_S: Final = 1.0

_STAMP: Final = re.compile(r"\[(\d{1,12})(?:\.(\d{1,9}))?\] ")
_NUMBERED: Final = re.compile(r"\b(?:icmp_seq|icmp_req|seq)[= ](\d+)")
_REPLY: Final = re.compile(
    r"\b(?:ttl|hlim)=\d+ [^=]*=\s*(\d+(?:[.,]\d+)?) ?(ms|s)\b", re.IGNORECASE
)
_TOOK: Final = re.compile(r"(\d+) .*?\d+(?:[.,]\d+)?% .*?(\d+) ?ms$")
_SENT: Final = re.compile(r"(\d+) \D+?\d+ .*?\d+(?:[.,]\d+)?%")
_HEADER: Final = re.compile(r"PING \S")
_FROM_0: Final = re.compile(r"PING .*: \d+ ")

_WRAPS: Final = 1 << 16
_WINDOW: Final = 512
"""A reply counts if it comes before this many probes later."""

_OFF: Final = 0.05
"""The largest error of the distance between probes."""


def read(file: BinaryIO, name: str, bin_s: float | None, every_s: float | None) -> TraceFile:
    """Reads a log. Raises TraceError."""
    lines = Lines(file, name, errors="replace")
    notes: list[str] = []
    return probes.trace(_probes(lines, every_s, notes), bin_s, lines.fail, notes)


def _probes(lines: Lines, every_s: float | None, notes: list[str]) -> Iterator[Probe]:
    for line in lines:
        text = line.strip()
        if text:
            yield from _Numbered(lines, every_s, notes).probes(text)
            return


def _ms(text: str) -> float:
    return float(text.replace(",", "."))


def _second(lines: Lines) -> NoReturn:
    lines.fail("a second test begins; allowed: one in a file, so split it before this line")


class _Numbered:
    """Reads logs that number probes: those of Linux and macOS."""

    def __init__(self, lines: Lines, every_s: float | None, notes: list[str]) -> None:
        self._lines = lines
        self._every_s = EVERY_S if every_s is None else every_s
        self._notes = notes
        self._found: dict[int, Probe] = {}
        self._next: int | None = None
        self._has_released = False
        self._newest = 0
        self._first: int | None = None
        self._sent: int | None = None
        self._first_answered: tuple[int, int] | None = None
        self._has_times: bool | None = None
        self._before: tuple[int, int] | None = None
        self._missing: list[int] = []
        self._twice = 0

    def probes(self, first: str) -> Iterator[Probe]:
        """Yields the probes in order; `first` is the first line."""
        if _HEADER.match(first):
            self._first = 0 if _FROM_0.match(first) else 1
        else:
            self._line(first)
        for line in self._lines:
            text = line.strip()
            if _HEADER.match(text):
                _second(self._lines)
            if self._line(text):
                yield from self._released(_WINDOW)
            elif sent := _SENT.match(text):
                self._sent = int(sent[1])
                if took := _TOOK.match(text):
                    self._check_distance(self._sent, int(took[2]))
        yield from self._released(0)
        yield from self._after_the_last()
        if self._twice:
            self._notes.append(f"{self._twice} replies came twice, or very late: they are left out")
        if self._has_times is False:
            self._notes.append(
                f"the log has no times: a probe every {self._every_s:g} s is assumed (--every)"
            )

    def _line(self, text: str) -> bool:
        """Takes in a line. Tells whether it is about a probe."""
        stamp = _STAMP.match(text)
        numbered = _NUMBERED.search(text)
        if numbered is None:
            return False
        number = self._unwrapped(int(numbered[1]))
        reply = _REPLY.search(text, numbered.end())
        if reply is None:
            if " ttl=" in text or " hlim=" in text:
                self._lines.fail("a reply has no time; allowed: pings of at least 16 bytes (-s 16)")
            return True
        if self._next is not None and number < self._next and not self._has_released:
            self._next = number
        if number in self._found or (self._next is not None and number < self._next):
            self._twice += 1
            return True
        rtt_s = _ms(reply[1]) / (1000 if reply[2].lower() == "ms" else 1)
        self._found[number] = Probe(self._sent_ns(stamp, number, rtt_s), rtt_s)
        return True

    def _unwrapped(self, low: int) -> int:
        """Returns the number of a probe, of which ping shows 16 bits."""
        if self._next is None:
            self._next = self._newest = low
            if self._first is not None and low - self._first >= _WRAPS // 2:
                self._first = None  # It is a part of a longer log.
            elif self._first is not None:
                self._next = self._first = min(self._first, low)
        number = self._newest + (low - self._newest + _WRAPS // 2) % _WRAPS - _WRAPS // 2
        if low >= _WRAPS:  # busybox shows more.
            number = low
        if number < self._newest - _WINDOW:
            _second(self._lines)
        self._newest = max(self._newest, number)
        return number

    def _sent_ns(self, stamp: re.Match[str] | None, number: int, rtt_s: float) -> int:
        if self._has_times is None:
            self._has_times = stamp is not None
        if self._has_times != (stamp is not None):
            self._lines.fail("only some lines have a time; allowed: all (ping -D) or none")
        if stamp is None:
            return round(number * self._every_s * NS_PER_S)
        came_ns = int(stamp[1]) * NS_PER_S + int((stamp[2] or "").ljust(9, "0"))
        return came_ns - round(rtt_s * NS_PER_S)

    def _released(self, window: int) -> Iterator[Probe]:
        """Yields the probes that no later line can tell about."""
        while self._next is not None and self._next <= self._newest - window:
            self._has_released = True
            one = self._found.pop(self._next, None)
            if one is None:
                self._missing.append(self._next)
            else:
                yield from self._lost_until(self._next, one.t_ns)
                yield one
                self._before = (self._next, one.t_ns)
                self._first_answered = self._first_answered or self._before
            self._next += 1

    def _lost_until(self, number: int, t_ns: int) -> Iterator[Probe]:
        """Yields the lost probes before one with this number and time, evenly apart."""
        if self._before is None:
            begin, begin_ns = number, t_ns
            later = max(self._found, default=number)
            every_ns = self._distance_ns(begin, begin_ns, later, self._found.get(later))
        else:
            begin, begin_ns = self._before
            every_ns = (t_ns - begin_ns) // (number - begin)
        yield from (Probe(begin_ns + (one - begin) * every_ns, None) for one in self._missing)
        self._missing = []

    def _distance_ns(self, begin: int, begin_ns: int, end: int, probe: Probe | None) -> int:
        """Returns the mean distance of probes between two, if the log has times."""
        if self._has_times and probe is not None and probe.t_ns > begin_ns:
            return (probe.t_ns - begin_ns) // (end - begin)
        return round(self._every_s * NS_PER_S)

    def _after_the_last(self) -> Iterator[Probe]:
        """Yields the lost probes after the last answered one."""
        if self._next is None:
            return
        end = self._next
        if self._first is not None and self._sent is not None:
            end = max(end, self._first + self._sent)
        begin, begin_ns = self._before or (end - len(self._missing) - 1, 0)
        first, first_ns = self._first_answered or (begin, begin_ns)
        every_ns = self._distance_ns(first, first_ns, begin, Probe(begin_ns, None))
        if (end - begin) * every_ns > MAX_LENGTH_NS:
            self._lines.fail(
                f"{self._sent} probes take too long; allowed: a log of up to {MAX_LENGTH_S} s"
            )
        for one in range(begin + 1, end):
            yield Probe(begin_ns + (one - begin) * every_ns, None)

    def _check_distance(self, count: int, took_ms: int) -> None:
        if self._has_times or count < 2:
            return
        told_s = took_ms / 1000 / (count - 1)
        if abs(told_s - self._every_s) > _OFF * self._every_s:
            self._lines.fail(
                f"{count} probes took {took_ms / 1000:g} s, which is one every {told_s:.3g} s; "
                f"needed: --every {told_s:.3g}"
            )


def _begins(line: str) -> bool:
    return _HEADER.match(line) is not None or (
        _NUMBERED.search(line) is not None and "," not in line.partition("=")[0]
    )


FORMAT: Final = Format(
    name="ping",
    looks="a log of ping",
    begins=_begins,
    read=lambda file, name, options, only_up: read(file, name, options.bin_s, options.every_s),
    keeps=frozenset({"rtt", "loss"}),
    takes=frozenset({"bin_s", "every_s"}),
)
