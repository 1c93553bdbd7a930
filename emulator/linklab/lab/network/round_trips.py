"""Records the round trips of the client's TCP segments over each link (`round-trips.jsonl`).

They are what tcpdump on the client would show: those of what the client sends. The paths' queues
are part of them, the server's time to think is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from linklab.core.records import FILES, RoundTripRecord, line
from linklab.core.round_trips import measured
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.packet_ring import PacketRing
from linklab.lab.network.lab import Lab


@contextmanager
def recorded(lab: Lab, run_dir: Path, now_s: Callable[[], float]) -> Iterator[None]:
    """Writes the round trips of the block at its end. `now_s` is the scenario's time.

    There is no file if more packets came than the rings hold.
    """
    with ExitStack() as stack:
        with inside(lab.client.node.namespace):
            rings = {
                name: stack.enter_context(closing(PacketRing(link.path.device)))
                for name, link in lab.links.items()
            }
        yield
        start_ns = time.time_ns() - round(now_s() * 1e9)
        records = []
        for name, ring in rings.items():
            seen = ring.seen()
            if seen is None:
                return
            for one in measured((each.t_ns, each.leaves, each.header) for each in seen):
                t_s, rtt_s = (one.t_ns - start_ns) / 1e9, one.length_ns / 1e9
                records.append(RoundTripRecord(t_s=t_s, link=name, port=one.port, rtt_s=rtt_s))
        records.sort(key=lambda one: one.t_s)
        (run_dir / FILES[RoundTripRecord]).write_bytes(b"".join(map(line, records)))
