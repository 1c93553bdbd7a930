"""What a trace is: samples one after another, and how far values may go. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

NS_PER_S: Final = 1_000_000_000

MIN_SAMPLE_NS: Final = 1_000_000
"""The shortest sample: a change of a link costs up to 1 ms of a processor over netlink."""

MAX_LENGTH_NS: Final = 1_000_000 * NS_PER_S
"""The longest trace, 11.5 days: up to here seconds as floats tell all nanoseconds apart."""


class TraceError(ValueError):
    """A trace that cannot be read, made or played; says where, why and what is allowed."""


@dataclass(frozen=True, slots=True)
class TraceSample:
    """What a link could carry for `length_ns` nanoseconds.

    Rates are those that a lab's link is shaped to: whole frames with the Ethernet header.
    `loss_ratio` is the share of downlink packets lost. None is what the trace does not tell:
    there the link keeps its own.
    """

    length_ns: int
    down_bps: int
    up_bps: int | None = None
    rtt_s: float | None = None
    loss_ratio: float | None = None


@dataclass(slots=True)
class TraceFile:
    """A file that is being read.

    `samples` can be taken once, and raise TraceError where the file is wrong. `columns` are
    those of `OPTIONAL` that samples may have. `comments` say what the file and its reader tell
    of it, `notes` what whoever imports it should know; they are complete when all samples are
    taken.
    """

    samples: Iterator[TraceSample]
    columns: frozenset[str]
    comments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


OPTIONAL: Final = ("up", "rtt", "loss")
"""What a trace may tell beside the downlink's rate."""
