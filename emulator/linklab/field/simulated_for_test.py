"""Simulates multilink's recordings of downloads over links with known properties; for tests."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from linklab.core.frames import FRAME_BYTES, goodput_ratio
from linklab.core.records import ClientRecord

TICK_S = 0.001


@dataclass(frozen=True)
class SimulatedLink:
    """A link with capacity `rate_bps(t_s)` and queueing delay `queued_s(t_s)`.

    The client requests bodies in the spans `asked`. `more` are further events of the link.
    """

    name: str = "wifi"
    device: str = "wlan0"
    rate_bps: Callable[[float], float] = lambda _: 20e6
    rtt_s: float = 0.02
    queued_s: Callable[[float], float] = lambda _: 0.05
    asked: tuple[tuple[float, float], ...] = ((0.1, 10.0),)
    tcp_s: float = 0.02
    counts_segments: bool = True
    out_of_order: Callable[[float], int] = lambda _: 0
    more: tuple[dict[str, Any], ...] = field(default=())


def lines(
    links: Iterable[SimulatedLink], end_s: float, algorithm: str = "alg3", **options: Any
) -> list[dict[str, Any]]:
    """Returns the lines of `client.jsonl`."""
    links = list(links)
    made: list[dict[str, Any]] = []
    for number, link in enumerate(links):
        made += _of_link(link, end_s, 100 * (number + 1))
    made = [one for one in made if one["t_ns"] <= _ns(end_s)]
    made.sort(key=lambda one: one["t_ns"])
    names = [{"link": one.name, "device": one.device} for one in links]
    start = {"t_ns": 0, "event": "start", "algorithm": algorithm, "links": names}
    done = {"t_ns": _ns(end_s), "event": "done", "outcome": "complete"}
    return [{**start, "options": options}, *made, done]


def _of_link(link: SimulatedLink, end_s: float, first_id: int) -> list[dict[str, Any]]:
    of = {"link": link.name}
    ready_s = link.tcp_s + link.rtt_s
    made: list[dict[str, Any]] = [
        {**of, "t_ns": _ns(ready_s), "event": "connected", "tcp_ns": _ns(link.tcp_s)}
        | {"tls_ns": _ns(link.rtt_s), "rtt_ns": _ns(link.rtt_s), "protocol": "TLS 1.3 h2"}
    ]
    for number, (begin_s, stop_s) in enumerate(link.asked, first_id):
        made += [
            {**of, "t_ns": _ns(begin_s), "event": "request", "id": number, "length": 1 << 30},
            {**of, "t_ns": _ns(begin_s + link.rtt_s), "event": "first_byte", "id": number},
            {**of, "t_ns": _ns(stop_s), "event": "end", "id": number, "outcome": "complete"},
        ]
    bits = 0.0
    for tick in range(round(end_s / TICK_S) + 1):
        t_s = tick * TICK_S
        if any(begin_s + link.rtt_s <= t_s < stop_s for begin_s, stop_s in link.asked):
            bits += link.rate_bps(t_s) * TICK_S
        if tick and tick % 100 == 0 and t_s > ready_s:
            made.append(
                {**of, "t_ns": _ns(t_s), "event": "sample", "in_flight": 1}
                | {"received_bytes": round(bits / 8 * goodput_ratio())}
                | {"rtt_ns": _ns(link.rtt_s + link.queued_s(t_s)), "min_rtt_ns": _ns(link.rtt_s)}
                | {"out_of_order": link.out_of_order(t_s)}
                | {"segments": int(bits / 8 / FRAME_BYTES) if link.counts_segments else 0}
            )
    return [*made, *({**of, **one} for one in link.more)]


def records(links: Iterable[SimulatedLink], end_s: float) -> list[ClientRecord]:
    """Returns the lines of `client.jsonl` as records."""
    return [msgspec.convert(one, ClientRecord) for one in lines(links, end_s)]


def run_dir(
    directory: Path,
    links: Iterable[SimulatedLink],
    end_s: float = 10.0,
    size_bytes: int = 0,
    **more: Any,
) -> Path:
    """Writes a run directory like `multilink get --run-dir`."""
    links = list(links)
    made = lines(links, end_s, **more)
    directory.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(one)}\n" for one in made)
    (directory / "client.jsonl").write_text(text)
    received = {link.name: 0 for link in links}
    for one in made:
        if one["event"] == "sample":
            received[one["link"]] = one["received_bytes"]
    summary = {
        "algorithm": made[0]["algorithm"],
        "outcome": "complete",
        "size_bytes": size_bytes or sum(received.values()),
        "download_ns": _ns(end_s),
        "links": {
            link.name: {"device": link.device, "bytes": received[link.name]} for link in links
        },
    }
    (directory / "client.json").write_text(json.dumps(summary))
    return directory


def _ns(t_s: float) -> int:
    return round(t_s * 1e9)
