"""Reads what `probes/both_ways.py` captured at both ends of a link, and what happened in between."""

import hashlib
import math
import statistics
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path

from linklab.core.link_state import Direction
from linklab.importers.packet_file import PacketFile

PORT = 9
_HEADERS_BYTES = 14 + 20 + 8
_SIGMAS = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class Interval:
    """A measured value, the expected one, and half of the 95 % interval around that."""

    what: str
    measured: float
    expected: float
    half: float

    @property
    def holds(self) -> bool:
        """Whether the measured value is within the interval."""
        return abs(self.measured - self.expected) <= self.half


@dataclass(frozen=True)
class Way:
    """The packets of one direction: when each was sent, and the numbers and times of what arrived.

    `arrivals` are intact packets. `damaged` counts the others. `ecn` is the ECN field of those that
    arrived.
    """

    sent_s: dict[int, float]
    arrivals: list[tuple[int, float]]
    damaged: int
    ecn: int

    @property
    def lost(self) -> list[bool]:
        """Whether each packet never arrived intact, in the order in which they were sent."""
        arrived = {number for number, _ in self.arrivals}
        return [number not in arrived for number in sorted(self.sent_s)]

    @property
    def loss(self) -> float:
        """The share of packets lost."""
        return statistics.fmean(self.lost)

    @property
    def bursts(self) -> list[int]:
        """The numbers of packets lost in a row."""
        return [len(list(group)) for is_lost, group in groupby(self.lost) if is_lost]

    @property
    def firsts(self) -> dict[int, float]:
        """When each packet arrived first, by number, in the order in which they were sent."""
        times: dict[int, float] = {}
        for number, t_s in self.arrivals:
            times.setdefault(number, t_s)
        return dict(sorted(times.items()))

    @property
    def delays_s(self) -> list[float]:
        """The one-way delays, in the order in which the packets were sent."""
        return [t_s - self.sent_s[number] for number, t_s in self.firsts.items()]

    @property
    def duplicated(self) -> float:
        """The share of arrived packets that came again."""
        return len(self.arrivals) / len(self.firsts) - 1

    @property
    def overtaking(self) -> float:
        """The share of arrived packets that came before one that was sent earlier."""
        times = list(self.firsts.values())
        latest = accumulate(times, max)
        return statistics.fmean(t_s < last_s for t_s, last_s in zip(times, latest, strict=True))

    def share(self, what: str, measured: float, expected: float, rho: float = 0.0) -> Interval:
        """Returns a share's interval. `rho` is the correlation of consecutive packets."""
        variance = expected * (1 - expected) * (1 + rho) / (1 - rho)
        return Interval(what, measured, expected, _SIGMAS * math.sqrt(variance / len(self.sent_s)))

    def losses(self, ratio: float, burst: float = 1.0) -> list[Interval]:
        """Returns the intervals of the loss and, for bursts, of their mean length."""
        leaving = 1 / burst
        rho = 0.0 if burst == 1 else 1 - leaving - ratio * leaving / (1 - ratio)
        found = [self.share("loss", self.loss, ratio, rho)]
        if burst > 1:
            deviation = math.sqrt(burst * (burst - 1))
            half = _SIGMAS * deviation / math.sqrt(len(self.bursts))
            found.append(Interval("burst", statistics.fmean(self.bursts), burst, half))
        return found

    def quantiles(self, expected_s: dict[float, float]) -> list[Interval]:
        """Returns, for each quantile, the interval of the share of delays that do not exceed it."""
        delays_s = self.delays_s
        return [
            self.share(
                f"delay p{share * 100:g}",
                statistics.fmean(delay_s <= value_s for delay_s in delays_s),
                share,
            )
            for share, value_s in expected_s.items()
        ]


def read(run_dir: Path) -> dict[Direction, Way]:
    """Returns both directions of a run."""
    client, server = (list(_packets(run_dir / f"{end}.pcap")) for end in ("client", "server"))
    return {
        "down": _way(server, client, from_client=False),
        "up": _way(client, server, from_client=True),
    }


def digest(run_dir: Path) -> str:
    """Returns a hash of all packets of a run with their nanoseconds."""
    contents = ((run_dir / f"{end}.pcap").read_bytes() for end in ("client", "server"))
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def _packets(path: Path) -> Iterator[tuple[float, bytes]]:
    with path.open("rb") as file:
        for packet in PacketFile(file):
            yield packet.t_s, packet.content


def _frame(content: bytes) -> bytes:
    """Returns the headers that all intact packets of a direction share.

    IP's number and checksum differ. UDP's checksum is a partial one, which only covers addresses and
    length, unless netem changed a bit.
    """
    return content[:18] + content[20:24] + content[26:_HEADERS_BYTES]


def _from_client(content: bytes) -> bool:
    """Whether the server's address is the destination. One wrong bit of an address is no other's."""
    return content[30:32] == b"\x0a\x00" or content[26:28] != b"\x0a\x00"


def _way(
    sender: Sequence[tuple[float, bytes]],
    receiver: Sequence[tuple[float, bytes]],
    *,
    from_client: bool,
) -> Way:
    def number(content: bytes) -> int:
        return int(struct.unpack_from("!Q", content, _HEADERS_BYTES)[0])

    sent = [one for one in sender if _from_client(one[1]) == from_client and _is_udp(one[1])]
    arrived = [
        one for one in receiver if _from_client(one[1]) == from_client and not _is_icmp(one[1])
    ]
    frames = Counter(_frame(content) for _, content in arrived or sent)
    right, _ = frames.most_common(1)[0]
    intact = [(number(content), t_s) for t_s, content in arrived if _frame(content) == right]
    return Way(
        {number(content): t_s for t_s, content in sent},
        intact,
        len(arrived) - len(intact),
        right[15] & 3,
    )


def _is_udp(content: bytes) -> bool:
    return content[12:14] == b"\x08\x00" and content[23] == 17


def _is_icmp(content: bytes) -> bool:
    return content[12:14] == b"\x08\x00" and content[23] == 1 and len(content) > 70
