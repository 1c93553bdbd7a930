"""Defines a trace: consecutive samples, and the limits of their values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from linklab.core.errors import LinklabError

NS_PER_S: Final = 1_000_000_000

MIN_SAMPLE_NS: Final = 1_000_000
"""The shortest sample. A change of a link by netlink takes up to 1 ms of processor time."""

MAX_SAMPLES: Final = 2_000_000
"""The most samples of a trace: 24 h in steps of 44 ms. A run keeps all of them in memory."""

MAX_LENGTH_S: Final = 1_000_000
"""The longest trace, 11.5 days. Up to here floats in seconds distinguish nanoseconds."""

MAX_LENGTH_NS: Final = MAX_LENGTH_S * NS_PER_S


class TraceError(LinklabError, ValueError):
    """A trace cannot be read, made or played. The message says where, why and what is allowed."""


@dataclass(frozen=True, slots=True)
class TraceSample:
    """The state of a link for `length_ns` nanoseconds.

    Rates count whole frames with the Ethernet header, like a lab's link. `loss_ratio` is the share
    of downlink packets lost. For None the link keeps its own value. A trace of delays has no rate.
    """

    length_ns: int
    down_bps: int | None = None
    up_bps: int | None = None
    rtt_s: float | None = None
    loss_ratio: float | None = None


@dataclass(slots=True)
class TraceFile:
    """A file that is being read.

    Attributes:
        samples: can be iterated once; raises TraceError for a wrong file.
        columns: those of `OPTIONAL` that samples may have.
        comments: from the file and its reader.
        notes: for the user who imports the file.
        has_rates: False if samples have delays, and no rate of the downlink.

    `comments` and `notes` are complete after the last sample.
    """

    samples: Iterator[TraceSample]
    columns: frozenset[str]
    comments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_rates: bool = True


OPTIONAL: Final = ("up", "rtt", "loss")
"""The optional values of a trace beside the downlink's rate."""


def limited(samples: Iterable[TraceSample], name: str) -> Iterator[TraceSample]:
    """Yields the samples of the recording `name`. Raises TraceError if there are too many."""
    for number, sample in enumerate(samples):
        if number == MAX_SAMPLES:
            raise TraceError(
                f"{name}: has more than {MAX_SAMPLES} samples; allowed: fewer and longer ones, such "
                "as `linklab import --bin 1` makes"
            )
        yield sample
