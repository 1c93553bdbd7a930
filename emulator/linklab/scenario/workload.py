"""Defines the keys of `workload`: what the client does with the payload. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from linklab.core import units
from linklab.core.limits import MAX_MESSAGE_BYTES, MAX_SENT_BYTES
from linklab.core.link_state import Direction
from linklab.models.keys import LENGTH, RATE, SIZE, TIME
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import count, number, size
from linklab.schema.rows import Row, Table

UPLOAD: Final = "upload"

_SENT: Final = units.format_size(MAX_SENT_BYTES)

WHOLE_FILE: Final = "file"
"""The name of the workload of a scenario that does not set one."""


@dataclass(frozen=True, slots=True)
class MediaPlayer:
    """The payload is a stream that plays while it arrives in order (GreenBag II-B).

    The player requests segments one after the other, of `segment_bytes` or of `segment_s`, or the
    whole stream at once. The defaults are those of Android's media framework (GreenBag IV).

    Attributes:
        rate_bps, length_s: the mean rate or the duration; the other is None.
        start_bytes: buffered bytes with which playing begins, and resumes after a stall; None means
            `low_bytes`.
        low_bytes: the player reads on below this buffer level.
        high_bytes: the player stops reading above this buffer level.
        variation: standard deviation / mean of the bytes per second of the stream, log-normal, from
            `seed`; 0 for a constant rate.
    """

    rate_bps: int | None = None
    length_s: float | None = None
    start_bytes: int | None = None
    low_bytes: int = 4_000_000
    high_bytes: int = 20_000_000
    segment_bytes: int | None = None
    segment_s: float | None = None
    variation: float = 0.0
    seed: int = 1

    def mean_rate_bps(self, size_bytes: int) -> float:
        """Returns the mean rate of a stream of this size."""
        if self.rate_bps is not None:
            return self.rate_bps
        assert self.length_s is not None
        return size_bytes * 8 / self.length_s

    @property
    def starts_with_bytes(self) -> int:
        """The buffered bytes at which playing begins."""
        return self.low_bytes if self.start_bytes is None else self.start_bytes


def _check_player(mapping: Mapping, player: MediaPlayer) -> None:
    if (player.rate_bps is None) == (player.length_s is None):
        mapping.fail(None, "needs either rate or length")
    for key, value in (("low", player.low_bytes), ("start", player.start_bytes)):
        if value is not None and value > player.high_bytes:
            size, high = units.format_size(value), units.format_size(player.high_bytes)
            mapping.fail(key, f"{size} is more than high; allowed: up to {high}")
    if player.segment_bytes is not None and player.segment_s is not None:
        mapping.fail("segment_length", "it and segment exclude each other; allowed: one of the two")


@dataclass(frozen=True, slots=True)
class Page:
    """The payload is divided into `objects` of a web page: first the document, then the others.

    Up to `connections` are used at the same time (eMPTCP, 4.5: 107 objects over 6). The sizes are
    log-normal, from `seed`, with a standard deviation of `variation` means.
    """

    objects: int = 107
    connections: int = 6
    variation: float = 2.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Rounds:
    """The payload is divided into answers of `answer_bytes`.

    Each answers a message of `request_bytes`, which is sent `think_s` after the answer before.
    """

    answer_bytes: int
    request_bytes: int
    think_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Paced:
    """The payload is a stream of `rate_bps`. Every `every_s` the client requests that time's bytes."""

    rate_bps: int
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Upload:
    """The payload is sent to the server."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload: one attribute is set, or none for a file download."""

    player: MediaPlayer | None = None
    page: Page | None = None
    rounds: Rounds | None = None
    paced: Paced | None = None
    upload: Upload | None = None

    @property
    def name(self) -> str:
        """The key of the workload, or `WHOLE_FILE`."""
        return next((row.key for row in TABLE.flat if getattr(self, row.attribute)), WHOLE_FILE)

    @property
    def sends(self) -> bool:
        """Whether the client sends more than requests for the file."""
        return self.rounds is not None or self.upload is not None

    def misfit(self, size_bytes: int) -> str | None:
        """Returns why the workload does not fit a payload of this size, or None."""
        if not self.sends or size_bytes <= MAX_SENT_BYTES:
            return None
        given = units.format_size(size_bytes)
        return f"{given} is too large for {self.name}; allowed with it: 1 B to {_SENT}"

    @property
    def takes_its_time(self) -> bool:
        """Whether playing or thinking limits the duration, however fast the links are.

        Then the oracle's time for the bytes is no reference.
        """
        return any((self.player, self.rounds, self.paced))

    def own_s(self, size_bytes: int) -> float:
        """Returns the total playing or thinking time for a payload of this size."""
        if self.player is not None:
            return size_bytes * 8 / self.player.mean_rate_bps(size_bytes)
        if self.paced is not None:
            return size_bytes * 8 / self.paced.rate_bps
        if self.rounds is not None:
            return math.ceil(size_bytes / self.rounds.answer_bytes) * self.rounds.think_s
        return 0.0

    @property
    def direction(self) -> Direction:
        """The direction of most of the payload."""
        return "down" if self.upload is None else "up"


def _check_one(mapping: Mapping, workload: Workload) -> None:
    if len(mapping.values) != 1:
        mapping.fail(None, f"{len(mapping.values)} workloads; needed: one of {_NAMES}")


_VARIATION: Final = number(0, 2)
"""A player's variation, within the client's limits."""
_OBJECTS_VARIATION: Final = number(0, 4)
_SEED: Final = count(0, 2**63 - 1)

_PLAYER: Final = Table(
    MediaPlayer,
    (
        Row(
            "rate",
            "rate_bps",
            RATE,
            "mean rate of the stream",
            unset=None,
            default="from `length`",
        ),
        Row(
            "length",
            "length_s",
            LENGTH,
            "how long the stream plays",
            unset=None,
            default="from `rate`",
        ),
        Row(
            "start",
            "start_bytes",
            SIZE,
            "bytes in the buffer with which playing begins, also after a stall",
            unset=None,
            default="`low`",
        ),
        Row(
            "low",
            "low_bytes",
            SIZE,
            "bytes in the buffer with which the player reads again after `high`",
        ),
        Row("high", "high_bytes", SIZE, "bytes in the buffer with which the player stops reading"),
        Row(
            "segment",
            "segment_bytes",
            SIZE,
            "bytes of one request",
            unset=None,
            default="the whole stream",
        ),
        Row(
            "segment_length",
            "segment_s",
            LENGTH,
            "playing time of one request, instead of `segment`",
            unset=None,
            default="the whole stream",
        ),
        Row(
            "variation",
            "variation",
            _VARIATION,
            "variation of the bytes per second: standard deviation / mean",
        ),
        Row("seed", "seed", _SEED, "seed of the variation"),
    ),
    _check_player,
    "A stream that plays while it arrives.",
)

_PAGE: Final = Table(
    Page,
    (
        Row("objects", "objects", count(1, 10_000), "number of objects"),
        Row("connections", "connections", count(1, 100), "most connections at a time"),
        Row(
            "variation",
            "variation",
            _OBJECTS_VARIATION,
            "variation of the objects' sizes: standard deviation / mean",
        ),
        Row("seed", "seed", _SEED, "decides the sizes"),
    ),
    about="A page: its document, then the objects that it names.",
)

_MESSAGE: Final = size(1, MAX_MESSAGE_BYTES)

_ROUNDS: Final = Table(
    Rounds,
    (
        Row(
            "answer",
            "answer_bytes",
            _MESSAGE,
            "size of each answer; the payload is cut into answers",
            needed=True,
        ),
        Row("request", "request_bytes", _MESSAGE, "size of each message", needed=True),
        Row("think", "think_s", TIME, "pause between an answer and the next message"),
    ),
    about=f"Messages, each after the answer to the last one; a payload of up to {_SENT}.",
)

_PACED: Final = Table(
    Paced,
    (
        Row("rate", "rate_bps", RATE, "rate of the stream", needed=True),
        Row("every", "every_s", LENGTH, "time from one request to the next"),
    ),
    about="A stream at a steady pace, such as music or live video.",
)

_UPLOAD: Final = Table(Upload, (), about=f"The payload, of up to {_SENT}, is sent and not fetched.")

TABLE: Final = Table(
    Workload,
    (
        Row("player", "player", _PLAYER, "a player of video", unset=None),
        Row("page", "page", _PAGE, "a browser", unset=None),
        Row("rounds", "rounds", _ROUNDS, "a messenger", unset=None),
        Row("paced", "paced", _PACED, "a steady stream", unset=None),
        Row("upload", "upload", _UPLOAD, "an upload", unset=None),
    ),
    _check_one,
    "One of these.",
)

_NAMES: Final = ", ".join(row.key for row in TABLE.flat)

NAMES: Final = (WHOLE_FILE, *(row.key for row in TABLE.flat))
"""The names of the workloads."""
