"""Tells whether this kernel can shape a link.

`python -m linklab.lab.shaping.probe` builds every qdisc of a lab on the loopback device of the
network namespace where it runs.
"""

from __future__ import annotations

import sys

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import tc
from linklab.lab.shaping.delay import Delay, Transit
from linklab.lab.shaping.rate_queue import RateQueue
from linklab.lab.shaping.tc import ShapingError

_LOOPBACK, _ROOT = 1, 0x10000


def probe() -> None:
    """Builds all qdiscs of a lab on this namespace's loopback device. Raises the error of one that
    fails."""
    channel = Channel()
    channel.request(rtnetlink.set_up(_LOOPBACK, up=True))
    queue = RateQueue(channel, _LOOPBACK, 10_000_000, 100_000)
    queue.set(10_000_000, is_held=False, is_shut=True)
    queue.set(10_000_000, is_held=False)
    channel.request(tc.delete_root(_LOOPBACK, _ROOT))
    Delay(channel, _LOOPBACK, Transit(0.01, 0.001, 0.01), 1)
    channel.close()


if __name__ == "__main__":
    try:
        probe()
    except NetlinkError as error:
        sys.exit(
            "the kernel lacks a qdisc of tc-hfsc, tc-bfifo, sch_plug or tc-netem "
            f"({error.strerror})"
        )
    except (OSError, ShapingError) as error:
        sys.exit(f"{error}")
