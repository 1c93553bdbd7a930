"""Defines the keys of `tcp`, settings of both end hosts' kernels. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linklab.schema.quantities import BOOLEAN, choice, size
from linklab.schema.rows import Row, Table

CONGESTION_CONTROLS: Final = ("reno", "cubic", "bbr", "dctcp", "vegas", "westwood")


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Kernel settings of both end hosts.

    The defaults are those of the measurements with peers: cubic, tcp_rmem and tcp_wmem up to 16 MiB,
    no metrics kept between connections, no Multipath TCP.
    """

    congestion_control: str = "cubic"
    rmem_max_bytes: int = 16 << 20
    wmem_max_bytes: int = 16 << 20
    metrics_save: bool = False
    mptcp: bool = False

    def sysctls(self) -> dict[str, str]:
        """Returns an end host's sysctls. Multipath TCP is set on its sockets instead."""
        return {
            "net.ipv4.tcp_congestion_control": self.congestion_control,
            "net.ipv4.tcp_rmem": f"4096 131072 {self.rmem_max_bytes}",
            "net.ipv4.tcp_wmem": f"4096 65536 {self.wmem_max_bytes}",
            "net.ipv4.tcp_no_metrics_save": "0" if self.metrics_save else "1",
        }


_BUFFER: Final = size(4096, (1 << 31) - 1, "4096 B to 2 GiB less 1 B")

TABLE: Final = Table(
    TcpSettings,
    (
        Row(
            "congestion_control",
            "congestion_control",
            choice(*CONGESTION_CONTROLS),
            "congestion control of both ends",
        ),
        Row("rmem_max", "rmem_max_bytes", _BUFFER, "the largest receive buffer"),
        Row("wmem_max", "wmem_max_bytes", _BUFFER, "the largest send buffer"),
        Row("metrics_save", "metrics_save", BOOLEAN, "connections learn from earlier ones"),
        Row("mptcp", "mptcp", BOOLEAN, "both ends use Multipath TCP"),
    ),
)
