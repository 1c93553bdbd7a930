"""Reads captures: pcap and pcapng, with µs or ns, of Ethernet, raw IP, and Linux' device `any`.

The rate of a sample is that of all IP packets in it, as frames of Ethernet. VLAN tags do not
count. So a trace shows what the link carried. That is its capacity only while it was used up.

The client's end decides which direction is down: in captures of `any` the host that captured, else
the address of the first SYN, else the one address of most packets. `--only client=ADDRESS` names it. Of
several devices `--only device=NAME` chooses one.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, NoReturn

from linklab.core.limits import MAX_RATE_BPS
from linklab.importers import encapsulation
from linklab.importers.bins import Bins
from linklab.importers.encapsulation import CUT, InnerPacket, UnreadableError
from linklab.importers.format import Format, Options
from linklab.importers.merging import joined
from linklab.importers.packet_file import MAGIC, CaptureError, Packet, PacketFile
from linklab.traces.trace import NS_PER_S, TraceError, TraceFile, TraceSample

BIN_S: Final = 0.1

_CHOICES: Final = ("client", "device")
_LOOKED_AT: Final = 2000
"""The packets that decide which address is the client's."""

_MOST: Final = 0.9
"""The share of packets that the client's address is in, if no SYN tells it."""

_ORDER: Final = "packets in order of time (reordercap puts them in order)"


@dataclass(frozen=True, slots=True)
class _Frame:
    """A packet: its size on the wire, and its way if the capture tells it."""

    t_ns: int
    size: int
    source: bytes
    destination: bytes
    went_out: bool | None
    is_first: bool


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    only = {key.strip().casefold(): value.strip() for key, value in (options.only or {}).items()}
    for key in only:
        if key not in _CHOICES:
            raise TraceError(f"{name}: {key!r} chooses nothing; allowed: {', '.join(_CHOICES)}")
    reading = _Reading(file, name, only)
    bin_ns = round((options.bin_s or BIN_S) * NS_PER_S)
    samples = reading.samples(bin_ns)
    return TraceFile(samples, frozenset({"up"}), [f"bins of {bin_ns / 1e6:g} ms"], reading.notes)


class _Reading:
    """One pass over the packets."""

    def __init__(self, file: BinaryIO, name: str, only: Mapping[str, str]) -> None:
        self._packets = PacketFile(file)
        self._name = name
        self._device = only.get("device")
        self._client = _address(only["client"], name) if "client" in only else None
        self._found_device: str | None = None
        self._others = 0
        self._is_of_any = False
        self.notes: list[str] = []

    def samples(self, bin_ns: int) -> Iterator[TraceSample]:
        """Yields the samples. A last bin of less than half the length is joined to the one before."""
        before: TraceSample | None = None
        for one in self._bins(bin_ns):
            if before is not None and 2 * one.length_ns < bin_ns:
                one = joined(before, one)
                before = None
            if before is not None:
                yield before
            before = one
        if before is not None:
            yield before

    def _bins(self, bin_ns: int) -> Iterator[TraceSample]:
        bins = Bins(bin_ns, "packet", _ORDER, self._fail)
        down = up = 0
        has_down = has_up = False
        for frame, is_up in self._with_way():
            for length_ns in bins.ended(frame.t_ns):
                yield self._sample(length_ns, down, up)
                down = up = 0
            if is_up:
                up, has_up = up + frame.size, True
            else:
                down, has_down = down + frame.size, True
        if not bins.total_ns:
            raise self._error("there are no packets that last for some time", "two or more of IP")
        if not has_down:
            raise self._error("only packets of the uplink are captured", "both directions")
        if bins.rest_ns:
            yield self._sample(bins.rest_ns, down, up)
        self._tell(has_up=has_up)

    def _tell(self, *, has_up: bool) -> None:
        self.notes.append(
            "the rates are what the link carried: its capacity only while it was used up"
        )
        if not has_up:
            self.notes.append("only packets of the downlink are captured: the uplink's rate is 0")
        if self._others:
            self.notes.append(
                f"{self._others} packets are not of IP or not of the client: left out"
            )
        if self._is_of_any:
            self.notes.append("captured on 'any': a packet that passed two devices counts twice")
        if self._packets.is_truncated:
            self.notes.append("the file is cut off: it is read up to its last whole packet")

    def _sample(self, length_ns: int, down: int, up: int) -> TraceSample:
        rates = [round(size * 8 * NS_PER_S / length_ns) for size in (down, up)]
        if max(rates) > MAX_RATE_BPS:
            raise self._error(
                f"{max(rates) / 1e6:.0f} Mbit/s in {length_ns / 1e6:g} ms",
                f"up to {MAX_RATE_BPS // 10**6} Mbit/s; --bin makes longer samples",
            )
        return TraceSample(length_ns, rates[0], rates[1])

    def _with_way(self) -> Iterator[tuple[_Frame, bool]]:
        """Yields the frames of the client, and whether they go up."""
        frames = self._frames()
        head = list(itertools.islice(frames, _LOOKED_AT))
        client = self._client
        if client is None and any(one.went_out is None for one in head):
            client = self._client_of(head)
        for one in itertools.chain(head, frames):
            if client is None:
                yield one, bool(one.went_out)
            elif client in (one.source, one.destination):
                yield one, one.source == client
            else:
                self._others += 1

    def _client_of(self, head: list[_Frame]) -> bytes:
        for one in head:
            if one.is_first:
                return one.source
        seen = Counter(
            address for one in head for address in dict.fromkeys((one.source, one.destination))
        )
        most = [address for address, count in seen.items() if count >= _MOST * len(head)]
        if len(most) != 1:
            found = most or [address for address, _ in seen.most_common(2)]
            shown = " or ".join(f"--only client={ipaddress.ip_address(one)}" for one in found)
            raise self._error("no handshake tells which end is the client", shown)
        return most[0]

    def _frames(self) -> Iterator[_Frame]:
        try:
            for packet in self._packets:
                self._is_of_any |= packet.link_type == encapsulation.SLL
                link = encapsulation.linked(packet)
                if self._is_of_device(packet, link.number):
                    inner = encapsulation.carried(packet)
                    if inner.source:
                        yield _frame(packet, inner, link.went_out)
                    else:
                        self._others += inner.name != CUT
        except (UnreadableError, CaptureError) as error:
            raise TraceError(f"{self._name}: {error}") from error

    def _is_of_device(self, packet: Packet, number: int) -> bool:
        device = packet.device or (f"dev{number}" if number else "")
        if self._device is not None:
            return device == self._device
        if self._found_device is None:
            self._found_device = device
        if device != self._found_device:
            raise self._error(
                f"packets of {self._found_device!r} and {device!r} are in the file",
                f"--only device={self._found_device}, or another",
            )
        return True

    def _error(self, reason: str, allowed: str) -> TraceError:
        return TraceError(f"{self._name}: {reason}; allowed: {allowed}")

    def _fail(self, reason: str) -> NoReturn:
        raise TraceError(f"{self._name}: {reason}")


def _frame(packet: Packet, inner: InnerPacket, went_out: bool | None) -> _Frame:
    size = encapsulation.frame_bytes(inner, packet.length)
    return _Frame(packet.t_ns, size, inner.source, inner.destination, went_out, inner.opens)


def _address(text: str, name: str) -> bytes:
    try:
        return ipaddress.ip_address(text).packed
    except ValueError as error:
        raise TraceError(f"{name}: --only client={text}: allowed is an IP address") from error


FORMAT: Final = Format(
    name="capture",
    looks="pcap or pcapng",
    begins=lambda line, where: False,
    has_head=lambda head: head[:4] in MAGIC,
    read=_read,
    keeps=frozenset({"up"}),
    takes=frozenset({"bin_s", "only"}),
)
