"""Records what the client's TCP packets tell: bursts and round trips.

Bursts are of all links together (`bursts.jsonl`). Round trips are what tcpdump on the client would
show: those of what the client sends (`round-trips.jsonl`). The links' queues are part of them, the
server's time to think is not.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from linklab.core import bursts, round_trips
from linklab.core.records import FILES, BurstRecord, RoundTripRecord, line
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.packet_ring import PacketRing, SeenPacket
from linklab.lab.network.lab import Lab


@contextmanager
def recorded(lab: Lab, run_dir: Path, now_s: Callable[[], float], workload: str) -> Iterator[None]:
    """Writes the bursts of the block at its end, and the round trips of messages (`rounds`). `now_s`
    is the scenario's time.

    There are no files if more packets came than the rings hold.
    """
    with ExitStack() as stack:
        with inside(lab.client.node.namespace):
            rings = {
                name: stack.enter_context(closing(PacketRing(link.path.device)))
                for name, link in lab.links.items()
            }
        yield
        start_ns = time.time_ns() - round(now_s() * 1e9)
        seen: dict[str, list[SeenPacket]] = {}
        for name, ring in rings.items():
            packets = ring.seen()
            if packets is None:
                return
            seen[name] = packets
        _write_bursts(seen, run_dir, start_ns, bursts.least_packets(workload))
        if workload == "rounds":
            _write_round_trips(seen, run_dir, start_ns)


def _write_bursts(
    seen: Mapping[str, list[SeenPacket]], run_dir: Path, start_ns: int, least: int
) -> None:
    times_ns = (one.t_ns for packets in seen.values() for one in packets)
    data_ns = sorted(t_ns for one in seen.values() for t_ns in round_trips.with_data(_plain(one)))
    records = []
    for one in bursts.found(times_ns, least):
        first = bisect_left(data_ns, one.from_ns)
        has_data = first < len(data_ns) and data_ns[first] <= one.to_ns
        records.append(
            BurstRecord(
                t_s=(one.from_ns - start_ns) / 1e9,
                length_s=(one.to_ns - one.from_ns) / 1e9,
                packets=one.packets,
                first_byte_s=(data_ns[first] - one.from_ns) / 1e9 if has_data else None,
            )
        )
    (run_dir / FILES[BurstRecord]).write_bytes(b"".join(map(line, records)))


def _plain(packets: Iterable[SeenPacket]) -> Iterator[tuple[int, bool, bytes]]:
    return ((one.t_ns, one.leaves, one.header) for one in packets)


def _write_round_trips(seen: Mapping[str, list[SeenPacket]], run_dir: Path, start_ns: int) -> None:
    records = [
        RoundTripRecord(
            t_s=(one.t_ns - start_ns) / 1e9, link=name, port=one.port, rtt_s=one.length_ns / 1e9
        )
        for name, packets in seen.items()
        for one in round_trips.measured(_plain(packets))
    ]
    records.sort(key=lambda one: one.t_s)
    (run_dir / FILES[RoundTripRecord]).write_bytes(b"".join(map(line, records)))
