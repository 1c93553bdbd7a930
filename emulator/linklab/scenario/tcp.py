"""Defines the keys of `tcp`, settings of the end hosts' kernels. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from yaml.nodes import MappingNode

from linklab.schema.mapping import Mapping
from linklab.schema.quantities import BOOLEAN, choice, size
from linklab.schema.rows import Row, Table

COUPLED_CONTROLS: Final = ("lia", "olia", "balia")
"""Congestion controls that couple the subflows of Multipath TCP. Only the guest's kernel has them. For
plain TCP they are Reno."""

CONGESTION_CONTROLS: Final = (
    *("reno", "cubic", "bbr", "dctcp", "vegas", "westwood"),
    *COUPLED_CONTROLS,
)

_KERNEL_SCHEDULER: Final = "default"
MPTCP_SCHEDULERS: Final = (_KERNEL_SCHEDULER, "lowest-rtt", "round-robin", "redundant", "blest")
"""Schedulers of Multipath TCP (net.mptcp.scheduler). Only the guest's kernel has more than one
(`places/guest/kernel_sources/net/mptcp/schedulers.c`)."""

ECN: Final = {"off": 0, "passive": 2, "on": 1, "accurate": 3}
"""What `ecn` means as the sysctl net.ipv4.tcp_ecn (Linux ip-sysctl.rst). `accurate` is AccECN."""

_KERNEL_ECN: Final = "passive"
"""The kernel's default: it accepts ECN and does not ask for it."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Holds the congestion control of each end."""

    client: str = "cubic"
    server: str = "cubic"


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Kernel settings of both end hosts.

    The defaults are those of the measurements with peers: cubic, tcp_rmem and tcp_wmem up to 16 MiB,
    no metrics kept between connections, no Multipath TCP.
    """

    congestion_control: Ends = Ends()
    ecn: str = _KERNEL_ECN
    rmem_max_bytes: int = 16 << 20
    wmem_max_bytes: int = 16 << 20
    metrics_save: bool = False
    mptcp: bool = False
    mptcp_scheduler: str = _KERNEL_SCHEDULER

    def sysctls(self, congestion_control: str) -> dict[str, str]:
        """Returns an end host's sysctls. Multipath TCP is set on its sockets instead."""
        ecn = {} if self.ecn == _KERNEL_ECN else {"net.ipv4.tcp_ecn": str(ECN[self.ecn])}
        scheduler = {"net.mptcp.scheduler": self.mptcp_scheduler}
        return {
            "net.ipv4.tcp_congestion_control": congestion_control,
            "net.ipv4.tcp_rmem": f"4096 131072 {self.rmem_max_bytes}",
            "net.ipv4.tcp_wmem": f"4096 65536 {self.wmem_max_bytes}",
            "net.ipv4.tcp_no_metrics_save": "0" if self.metrics_save else "1",
            **ecn,
            **({} if self.mptcp_scheduler == _KERNEL_SCHEDULER else scheduler),
        }


_BUFFER: Final = size(4096, (1 << 31) - 1, "4096 B to 2 GiB less 1 B")
_CONTROL: Final = choice(*CONGESTION_CONTROLS)
_ENDS: Final = Table(
    Ends,
    (
        Row("client", "client", _CONTROL, "of the client, which sends uploads"),
        Row("server", "server", _CONTROL, "of the server, which sends downloads"),
    ),
)


class _EachEnd:
    """Reads and writes one congestion control for both ends, or a mapping of the ends to theirs."""

    allowed: Final = f"{_CONTROL.allowed}; or `{{client: …, server: …}}`"

    def read(self, mapping: Mapping, key: str) -> Ends:
        if isinstance(mapping.values[key], MappingNode):
            return _ENDS.read(mapping, key)
        both = _CONTROL.read(mapping, key)
        return Ends(both, both)

    def write(self, ends: Ends) -> Any:
        return ends.client if ends.client == ends.server else _ENDS.write(ends)


TABLE: Final = Table(
    TcpSettings,
    (
        Row(
            "congestion_control",
            "congestion_control",
            _EachEnd(),
            "congestion control of both ends, or of each",
        ),
        Row(
            "ecn",
            "ecn",
            choice(*ECN),
            "`passive` accepts ECN, `on` asks for it, `accurate` asks for AccECN",
            unset=_KERNEL_ECN,
            default=_KERNEL_ECN,
        ),
        Row("rmem_max", "rmem_max_bytes", _BUFFER, "the largest receive buffer"),
        Row("wmem_max", "wmem_max_bytes", _BUFFER, "the largest send buffer"),
        Row("metrics_save", "metrics_save", BOOLEAN, "connections learn from earlier ones"),
        Row("mptcp", "mptcp", BOOLEAN, "both ends use Multipath TCP"),
        Row(
            "mptcp_scheduler",
            "mptcp_scheduler",
            choice(*MPTCP_SCHEDULERS),
            "chooses the subflow that Multipath TCP sends over; `default` is the kernel's own",
            unset=_KERNEL_SCHEDULER,
            default=_KERNEL_SCHEDULER,
        ),
    ),
)
