"""Tells whether this kernel can hold a lab's links.

`python -m linklab.lab.shaping.probe` builds all kinds of interfaces and every qdisc of a lab in the
network namespace where it runs. It names all that the kernel lacks.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import network_of, write_sysctls
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import hfsc, tc
from linklab.lab.shaping.delay import Netem, transit
from linklab.lab.shaping.rate_queue import rate_queue
from linklab.lab.shaping.tc import ShapingError
from linklab.queues import registry

_LOOPBACK = 1
_LACKING = (errno.ENOENT, errno.EOPNOTSUPP)
"""What the kernel answers for a kind of qdisc or of interface that it does not know."""


def _wanted() -> Iterator[tuple[str, bytes]]:
    """Yields kernel modules, and a message that makes something of each."""
    queue = registry.DEFAULT
    fifo = registry.of_settings(queue)
    qdiscs = (
        ("sch_hfsc", "hfsc", bytes(2)),
        ("sch_fifo", fifo.kind, fifo.options(queue, 100_000)),
        ("sch_plug", hfsc.PLUG, hfsc.WITHOUT_ROOM),
        ("sch_netem", "netem", bytes(24)),
    )
    for number, (module, kind, options) in enumerate(qdiscs, 1):
        yield module, tc.put_qdisc(_LOOPBACK, number << 16, tc.ROOT_PARENT, kind, options)
    yield "veth", rtnetlink.add_pair("one", "other")
    yield "bridge", rtnetlink.add_bridge("joined")


def lacking() -> list[str]:
    """Returns the modules of the kernel that a lab needs and that are missing."""
    found = []
    channel = Channel()
    for module, message in _wanted():
        try:
            channel.request(message)
        except NetlinkError as error:
            if error.errno not in _LACKING:
                raise
            found.append(module)
    channel.close()
    return found


def probe() -> None:
    """Builds all qdiscs of a lab on this namespace's loopback device, in place of those of `lacking`.

    It also changes a setting of the namespace. Raises the error of a step that fails.
    """
    channel = Channel()
    channel.request(tc.delete(_LOOPBACK, 0))
    channel.request(rtnetlink.set_up(_LOOPBACK, up=True))
    queue = rate_queue(channel, _LOOPBACK, 10_000_000, 100_000)
    queue.set(10_000_000, is_held=False, is_shut=True)
    queue.set(10_000_000, is_held=False)
    channel.request(tc.delete(_LOOPBACK, tc.ROOT))
    Netem(channel, _LOOPBACK, transit(0.01, 0.001, 0.01), 1)
    channel.close()
    # In a container /proc/sys may be read-only.
    write_sysctls(network_of(os.getpid()), {"net.ipv4.ip_forward": "1"})


def main() -> None:
    """Probes this namespace's kernel; exits with one line about what is missing."""
    try:
        missing = lacking()
        if missing:
            names = " ".join(missing)
            sys.exit(f"this kernel lacks {', '.join(missing)} (root may try: modprobe -a {names})")
        probe()
    except (OSError, ShapingError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
