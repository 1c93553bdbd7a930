"""One acknowledgement for many packets of a link (super-aggregation, note 4).

As a Wi-Fi card does it, which hands on what came in one go as one large packet: the kernel joins what
comes close together (generic receive offload), and TCP acknowledges what it is handed. Packets are
told apart on the cable and in every queue all the same. What has waited for `_LONGEST_NS`, or a tick
of the guest's clock, 10 ms, is handed on as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.core.frames import IPV4_BYTES, SEGMENT_BYTES, TCP_BYTES
from linklab.lab.kernel import offload, rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.network.lab import Lab

PACKETS: Final = 12

_LONGEST_NS: Final = 20_000_000
_MOST_LOOKS: Final = 1000
"""How often the kernel may put off what it has begun to join."""


def aggregate(lab: Lab, link: str, sysfs: Path) -> None:
    """From now on the client acknowledges `PACKETS` of the link at a time, where so many come within
    a tick. `sysfs` is that of the client's network namespace. Raises OSError where the kernel
    refuses."""
    device = lab.links[link].path.device
    most_bytes = IPV4_BYTES + TCP_BYTES + PACKETS * SEGMENT_BYTES
    index = lab.client.indices[device]
    lab.client.channel.request(rtnetlink.set_receive_size(index, most_bytes + 1))
    with inside(lab.client.node.namespace):
        offload.switch_on(device, "generic-receive-offload")
    settings = sysfs / "class" / "net" / device
    (settings / "gro_flush_timeout").write_text(str(_LONGEST_NS))
    (settings / "napi_defer_hard_irqs").write_text(str(_MOST_LOOKS))
