"""Makes the client acknowledge many packets of a link at once (super-aggregation, note 4).

A Wi-Fi card passes on the packets of one burst as one large packet. Here the kernel does: generic
receive offload joins packets that arrive close together, and TCP acknowledges the joined packet.
Packets stay separate on the cable and in every queue. Packets that have waited for `_LONGEST_NS`,
or for a tick of the guest's clock, 10 ms, are passed on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.core.frames import IPV4_BYTES, SEGMENT_BYTES, TCP_BYTES
from linklab.lab.kernel import offload, rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.network.lab import Lab
from linklab.lab.super_aggregation.other_way import PACKETS

_LONGEST_NS: Final = 20_000_000
_MOST_LOOKS: Final = 1000
"""How often the kernel may postpone passing on joined packets."""


def aggregate(lab: Lab, link: str, sysfs: Path) -> None:
    """Makes the client acknowledge `PACKETS` of the link at once, if that many arrive within a
    tick. `sysfs` is that of the client's network namespace. Raises OSError if the kernel refuses.
    """
    device = lab.links[link].path.device
    most_bytes = IPV4_BYTES + TCP_BYTES + PACKETS * SEGMENT_BYTES
    index = lab.client.indices[device]
    lab.client.channel.request(rtnetlink.set_receive_size(index, most_bytes + 1))
    with inside(lab.client.node.namespace):
        offload.switch_on(device, "generic-receive-offload")
    settings = sysfs / "class" / "net" / device
    (settings / "gro_flush_timeout").write_text(str(_LONGEST_NS))
    (settings / "napi_defer_hard_irqs").write_text(str(_MOST_LOOKS))
