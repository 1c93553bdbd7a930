"""Reads tcpdump's captures as recordings: one file for each link, or one file of several devices.

A capture has every packet with its time of arrival, so the carried bytes are exact. Round trips
come from handshakes and from TCP's timestamps (RFC 7323 4): from the first packet with a value to
the first packet that echoes it.

Requests are encrypted, so a silence may be the client's or the link's. It is the client's pause in
two cases. In both it ends a round trip after the client sent something.

- The silence is long, or its last segment before was not full: the server had no more to send.
- The silence is short, and the packet that ends it did not wait. By the server's timestamp it
  was in flight as briefly as any other, so the link had nothing to carry before.

Any other silence is the link's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import dpkt

from linklab.core.frames import ETHERNET_BYTES, MTU_BYTES, SEGMENT_BYTES
from linklab.field.link_history import Connection, LinkHistory, LinkProgress, Span, merged
from linklab.field.recording import Recording, RecordingError, require_length
from linklab.field.segments import UNNAMED, CapturedSegment, Flow, Segments
from linklab.importers.packet_file import MAGIC
from linklab.scenario import ClientSettings

_LOOK_S: Final = 0.1
"""The sampling interval."""

_PAUSE_S: Final = 0.05
"""A silence of this length is a pause even if the segment before it was full."""

_HELD_S: Final = 0.2
"""After a silence of this length, the code checks whether the data was sent before the silence."""

_TICKS_S: Final = (1e-6, 1e-3)
"""The ticks of server clocks that are fine enough to tell how long packets waited (Linux)."""

_PROMPT_S: Final = 0.003
"""A packet did not wait if it took at most this much longer than the fastest one. Timestamps count
milliseconds."""

_SHORT_PAUSE: Final = (0.003, 4.0, 8)
"""The least length of other silences: seconds, and a factor of the mean gap between that many
packets before."""

_NUMBERS: Final = 0xFFFFFFFF

_REPEATED: Final = 0.3
"""The largest allowed share of retransmitted data. Even the worst links stay below it."""


@dataclass(slots=True)
class _Flow:
    """A connection as its client sees it.

    Attributes:
        expected: sequence number of the server's next byte in order.
        highest: sequence number after the last byte received.
        asked_to: sequence number of the client's next byte.
        first, last: the first and the last data received.
    """

    dialled_s: float
    mss: int = SEGMENT_BYTES
    answered_s: float | None = None
    handshake_s: float | None = None
    expected: int | None = None
    highest: int = 0
    asked_to: int | None = None
    first: _Data | None = None
    last: _Data | None = None
    is_closed: bool = False
    sent_at_s: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Data:
    """A received packet with payload.

    `was_full` is about its last segment. `is_next` says that it is next in order. `clock` is the
    server's timestamp.
    """

    t_s: float
    was_full: bool
    is_next: bool
    flow: _Flow
    clock: int


@dataclass(slots=True)
class _Link:
    """What has been read of a link so far. Lists ascend in time.

    Attributes:
        held_s: arrivals, after a silence, of data that was sent before the silence.
        gone: silences in the middle of a transfer that ended with a new connection.
    """

    file: Path
    is_whole: bool = True
    came: list[tuple[float, int]] = field(default_factory=list)
    data: list[_Data] = field(default_factory=list)
    rtts: list[tuple[float, float]] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    asked_s: list[float] = field(default_factory=list)
    held_s: list[float] = field(default_factory=list)
    gone: list[Span] = field(default_factory=list)
    flows: dict[Flow, _Flow] = field(default_factory=dict)
    up_bytes: int = 0
    payload_bytes: int = 0
    repeated_bytes: int = 0
    name: str = ""
    notes: list[str] = field(default_factory=list)


def is_capture(file: Path) -> bool:
    """Tells whether a file begins like a capture. Raises OSError."""
    with file.open("rb") as opened:
        return opened.read(4) in MAGIC


def read(files: Sequence[Path]) -> list[Recording]:
    """Reads captures made at the client.

    A link is named after its file (`wlan0.pcap`), or after its device if a file has several.
    Captures of the same time form one recording. Raises RecordingError.
    """
    links = sorted((link for file in files for link in _read(file)), key=_begin_s)
    groups: list[dict[str, _Link]] = []
    for link in links:
        together = groups and _begin_s(link) <= max(one.came[-1][0] for one in groups[-1].values())
        group = groups[-1] if together else {}
        if link.name in group:
            raise RecordingError(
                f"{link.file}: of the same time as {group[link.name].file}, and called the same; "
                "needed: a file for each link, called like it"
            )
        group[link.name] = link
        if not together:
            groups.append(group)
    return [_recording(group) for group in groups]


def _begin_s(link: _Link) -> float:
    return min(one.dialled_s for one in link.flows.values())


def _read(file: Path) -> list[_Link]:
    """Reads the links of a file: the devices over which downloads came."""
    links: dict[str, _Link] = {}
    segments = Segments(file)
    try:
        for one in segments:
            link = links.setdefault(one.device, _Link(file))
            _take(link, one)
    except (OSError, ValueError) as error:
        raise RecordingError(f"{file}: cannot be read as a capture: {error}") from error
    faults = {device: fault for device, link in links.items() if (fault := _fault(link))}
    used = {device: link for device, link in links.items() if device not in faults}
    if not used:
        fault = next(iter(faults.values()), "no handshake of TCP is in it")
        what = segments.contents()
        raise RecordingError(
            f"{file}: {fault}{f', but {what}' if what else ''}; needed: what tcpdump saw at "
            "the client of a download, from its beginning on"
        )
    for device, link in used.items():
        link.name = file.stem if len(used) == 1 else _name(file, device)
        link.is_whole = not segments.is_truncated
        if link.repeated_bytes > _REPEATED * link.payload_bytes:
            raise RecordingError(
                f"{file}: {100 * link.repeated_bytes / link.payload_bytes:.0f} % of the data came again after "
                "it had come; allowed: a capture that has each packet once"
            )
    first = next(iter(used.values()))
    first.notes = [f"{file.name}: {note}" for note in segments.notes]
    if len(used) > 1:
        names = ", ".join(link.name for link in used.values())
        first.notes.append(f"{file.name}: its devices are read as links of their own: {names}.")
    for device, fault in faults.items():
        first.notes.append(f"{file.name}: device {device} is left out: {fault}.")
    return list(used.values())


def _fault(link: _Link) -> str:
    """Returns why the link shows no download; "" if it shows one."""
    if not link.flows:
        return "no handshake of TCP is in it"
    if not link.came or not link.data:
        return "no data came over the connections in it"
    return "more data went than came" if link.up_bytes > sum(size for _, size in link.came) else ""


def _name(file: Path, device: str) -> str:
    """Names the link of one of several devices, by the device's name or number."""
    if device.startswith(UNNAMED):
        raise RecordingError(
            f"{file}: holds several devices, and Linux' cooked headers do not tell them apart; "
            "allowed: one file for each link (tcpdump -i wlan0), or LINUX_SLL2 (tcpdump -y)"
        )
    return device if device[0].isalpha() else f"dev{device.rpartition(':')[2].replace('.', 'x')}"


def _take(link: _Link, one: CapturedSegment) -> None:
    segment = one.tcp
    up: Flow = (one.source, segment.sport, one.destination, segment.dport)
    down: Flow = (one.destination, segment.dport, one.source, segment.sport)
    sizes = (one.length, one.payload)
    if segment.flags & dpkt.tcp.TH_SYN:
        _take_syn(link, one.t_s, segment, up, down)
    elif up in link.flows:
        _take_up(link, link.flows[up], one.t_s, segment, sizes)
    elif down in link.flows:
        _take_down(link, link.flows[down], one.t_s, segment, sizes)


def _take_syn(link: _Link, t_s: float, segment: Any, up: Flow, down: Flow) -> None:
    if not segment.flags & dpkt.tcp.TH_ACK:
        if up not in link.flows:
            _take_reconnection(link, t_s)
        flow = link.flows.setdefault(up, _Flow(t_s))
        flow.sent_at_s.setdefault(_timestamps(segment)[0], t_s)
        return
    if down in link.flows:
        flow = link.flows[down]
        flow.answered_s = t_s
        flow.expected = flow.highest = (segment.seq + 1) & _NUMBERS
        flow.mss = min(flow.mss, _mss(segment))


def _take_reconnection(link: _Link, t_s: float) -> None:
    since_s = link.data[-1].t_s if link.data else t_s
    if t_s - since_s > _HELD_S and _is_in_the_midst(link):
        link.gone.append((since_s, t_s))


def _is_in_the_midst(link: _Link) -> bool:
    """Tells whether the server had more to send."""
    last = link.data[-1] if link.data else None
    return last is not None and last.was_full and not last.flow.is_closed


def _take_up(link: _Link, flow: _Flow, t_s: float, segment: Any, sizes: tuple[int, int]) -> None:
    length, payload = sizes
    if flow.handshake_s is None and flow.answered_s is not None:
        flow.handshake_s = t_s - flow.dialled_s
        link.rtts.append((t_s, flow.handshake_s))
    flow.sent_at_s.setdefault(_timestamps(segment)[0], t_s)
    link.up_bytes += length + ETHERNET_BYTES
    end = (segment.seq + payload) & _NUMBERS
    if payload and (flow.asked_to is None or _is_after(end, flow.asked_to)):
        link.asked_s.append(t_s)
        flow.asked_to = end


def _take_down(link: _Link, flow: _Flow, t_s: float, segment: Any, sizes: tuple[int, int]) -> None:
    length, payload = sizes
    size = length + ETHERNET_BYTES
    flow.is_closed |= bool(segment.flags & (dpkt.tcp.TH_FIN | dpkt.tcp.TH_RST))
    if length > MTU_BYTES:  # The device or the kernel joined several packets.
        size += (-(-payload // flow.mss) - 1) * (length - payload + ETHERNET_BYTES)
    link.came.append((t_s, size))
    link.payload_bytes += payload
    sent_s = flow.sent_at_s.pop(_timestamps(segment)[1], None)
    is_prompt = flow.last is None or t_s - flow.last.t_s < _HELD_S
    if sent_s is not None and payload and is_prompt:  # Otherwise it may be a retransmission.
        link.rtts.append((t_s, t_s - sent_s))
    if not payload:
        return
    is_next, is_full = segment.seq == flow.expected, payload % flow.mss == 0
    came = _Data(t_s, is_full, is_next, flow, _timestamps(segment)[0])
    link.data.append(came)
    if _waited(flow, came):
        link.held_s.append(t_s)
    flow.first, flow.last = flow.first or came, came
    if flow.expected is None:
        return
    end = (segment.seq + payload) & _NUMBERS
    if not _is_after(end, flow.expected):
        link.repeated_bytes += payload
    if not _is_after(flow.highest, end):
        flow.highest = end
    if _is_after(segment.seq, flow.expected):
        link.behind.append(t_s)
    elif _is_after(end, flow.expected):
        flow.expected = flow.highest  # Assumes that this packet fills all gaps.


def _waited(flow: _Flow, came: _Data) -> bool:
    """Tells whether the first data after a silence was in flight during it.

    The server's timestamp tells this. A retransmission does not count.
    """
    last = flow.last
    if last is None or came.t_s - last.t_s < _HELD_S:
        return False
    tick_s = _tick_s(flow)
    sent_later_s = ((came.clock - last.clock) & _NUMBERS) * tick_s
    return tick_s > 0 and sent_later_s < (came.t_s - last.t_s) / 2


def _tick_s(flow: _Flow) -> float:
    """Estimates the tick of the server's clock; 0 if the server sends no timestamps."""
    if flow.first is None or flow.last is None:
        return 0.0
    ticks = (flow.last.clock - flow.first.clock) & _NUMBERS
    return (flow.last.t_s - flow.first.t_s) / ticks if ticks else 0.0


def _waits_s(link: _Link) -> list[float]:
    """Returns how much longer than its connection's fastest packet each packet was in flight.

    The value is infinite if the ticks of the server's clock are unknown or too long.
    """
    ticks = {}
    for flow in link.flows.values():
        about_s = _tick_s(flow)
        ticks[id(flow)] = next((one for one in _TICKS_S if 0.9 < about_s / one < 1.1), math.inf)
    transits_s = [
        one.t_s - ((one.clock - first.clock) & _NUMBERS) * ticks[id(one.flow)]
        for one in link.data
        if (first := one.flow.first)
    ]
    least_s: dict[int, float] = {}
    for one, transit_s in zip(link.data, transits_s, strict=True):
        least_s[id(one.flow)] = min(transit_s, least_s.get(id(one.flow), math.inf))
    return [
        transit_s - least_s[id(one.flow)] if math.isfinite(transit_s) else math.inf
        for one, transit_s in zip(link.data, transits_s, strict=True)
    ]


def _is_after(one: int, other: int) -> bool:
    """Compares sequence numbers, which wrap around (RFC 9293 3.4)."""
    return 0 < (one - other) & _NUMBERS < 1 << 31


def _timestamps(segment: Any) -> tuple[int, int]:
    """Returns TSval and TSecr; 0 if the segment has none."""
    for kind, value in _options(segment):
        if kind == dpkt.tcp.TCP_OPT_TIMESTAMP and len(value) == 8:
            return int.from_bytes(value[:4], "big"), int.from_bytes(value[4:], "big")
    return 0, 0


def _mss(segment: Any) -> int:
    for kind, value in _options(segment):
        if kind == dpkt.tcp.TCP_OPT_MSS and len(value) == 2:
            return max(1, int.from_bytes(value, "big") - 12)
    return SEGMENT_BYTES


def _options(segment: Any) -> list[tuple[int, bytes]]:
    try:
        return [one for one in dpkt.tcp.parse_opts(segment.opts) if one]  # None: truncated.
    except (dpkt.Error, IndexError):
        return []


def _recording(links: dict[str, _Link]) -> Recording:
    begin_s = min(map(_begin_s, links.values()))
    end_s = max(link.came[-1][0] for link in links.values())
    source = ", ".join(dict.fromkeys(str(link.file) for link in links.values()))
    require_length(source, end_s - begin_s)
    return Recording(
        source=source,
        contestant="",
        is_complete=all(link.is_whole for link in links.values()),
        length_s=end_s - begin_s,
        size_bytes=sum(link.payload_bytes for link in links.values()),
        histories=tuple(_history(name, link, begin_s, end_s) for name, link in links.items()),
        client=ClientSettings(),
        bandwidths_bps={},
        notes=tuple(note for link in links.values() for note in link.notes),
    )


def _history(name: str, link: _Link, begin_s: float, end_s: float) -> LinkHistory:
    base_s = min((rtt_s for _, rtt_s in link.rtts), default=0.0)
    coming = _coming(link, begin_s, base_s)
    gone = [*link.gone, *([(link.data[-1].t_s, end_s)] if _is_in_the_midst(link) else [])]
    return LinkHistory(
        link=name,
        device=name,
        is_exact=True,
        samples=tuple(_samples(link, begin_s, end_s, base_s)),
        asked=merged([*coming, *((at_s - begin_s, to_s - begin_s) for at_s, to_s in gone)]),
        coming=coming,
        held_s=tuple(at_s - begin_s for at_s in link.held_s),
        connections=tuple(
            Connection(one.dialled_s - begin_s, one.dialled_s + took_s - begin_s, took_s)
            for one in sorted(link.flows.values(), key=lambda one: one.dialled_s)
            if (took_s := one.handshake_s)
        ),
    )


def _coming(link: _Link, begin_s: float, base_s: float) -> tuple[Span, ...]:
    """Returns the spans in which data arrived, without pauses of the client."""
    at_least_s, gaps, count = _SHORT_PAUSE
    spans: list[Span] = []
    asked = iter(link.asked_s)
    last_asked_s = -1.0
    next_asked_s = next(asked, None)
    since_s = before_s = link.data[0].t_s
    was_full, gap_s = True, 0.0
    for one, waited_s in zip(link.data, _waits_s(link), strict=True):
        t_s = one.t_s
        while next_asked_s is not None and next_asked_s <= t_s - base_s / 2:
            last_asked_s, next_asked_s = next_asked_s, next(asked, None)
        silent_s = t_s - before_s
        is_long = silent_s > max(_PAUSE_S, base_s) and last_asked_s > before_s
        is_short = silent_s > max(at_least_s, gaps * gap_s)
        was_asked = t_s - last_asked_s < 2 * base_s + _PAUSE_S
        is_idle = one.is_next and waited_s < _PROMPT_S and silent_s < max(_HELD_S, base_s)
        if (is_long and was_asked) or (is_short and (is_idle or (was_asked and not was_full))):
            spans.append((since_s - begin_s, before_s - begin_s))
            since_s = t_s
        else:
            gap_s += (silent_s - gap_s) / count
        before_s, was_full = t_s, one.was_full
    return merged([*spans, (since_s - begin_s, before_s - begin_s)])


def _samples(link: _Link, begin_s: float, end_s: float, base_s: float) -> Iterator[LinkProgress]:
    """Yields samples in steps of `_LOOK_S`, each with the latest round trip."""
    rtts, behind = iter(link.rtts), iter(link.behind)
    next_rtt, next_behind = next(rtts, None), next(behind, None)
    now = LinkProgress(0.0, 0, 0.0, base_s)
    number = 1
    for t_s, size in [*link.came, (end_s + _LOOK_S, 0)]:
        while t_s - begin_s > number * _LOOK_S:
            look_s = number * _LOOK_S
            while next_rtt is not None and next_rtt[0] - begin_s <= look_s:
                now = replace(now, rtt_s=next_rtt[1])
                next_rtt = next(rtts, None)
            while next_behind is not None and next_behind - begin_s <= look_s:
                now = replace(now, out_of_order=now.out_of_order + 1)
                next_behind = next(behind, None)
            yield replace(now, t_s=look_s)
            number += 1
        now = replace(now, carried_bytes=now.carried_bytes + size)
