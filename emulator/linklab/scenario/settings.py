"""What a scenario says, checked: values in base units. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from linklab.core.algorithms import DEFAULTS
from linklab.core.link_kinds import LinkKind
from linklab.models.carriers import CarrierSettings
from linklab.models.events import Event
from linklab.models.layer import STEP_S
from linklab.models.on_off import OnOffSettings
from linklab.models.rrc import RrcSettings
from linklab.models.trace import TraceSettings
from linklab.models.wifi import WifiSettings
from linklab.traces.trace import Sample

MAX_QUEUE_BYTES: Final = 1_000_000_000

SAMPLE_S: Final = 0.5
"""How often the queues' counters are written down unless a scenario says otherwise."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The file that is downloaded: bytes generated from `seed` (see linklab.lab.payload)."""

    size_bytes: int
    seed: int = 1
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Kernel settings of both end hosts.

    The defaults are those under which the peers were measured: cubic, tcp_rmem and
    tcp_wmem up to 16 MiB, nothing remembered between connections, plain TCP.
    """

    congestion_control: str = "cubic"
    rmem_max_bytes: int = 16 << 20
    wmem_max_bytes: int = 16 << 20
    metrics_save: bool = False
    mptcp: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that a link plays: the file it comes from, what is in it, and how it is played."""

    file: Path
    samples: tuple[Sample, ...]
    settings: TraceSettings


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """A link before its first event.

    `jitter_s` is how far the one-way delay, rtt_s/2, strays to either side. `loss_ratio`
    is the share of downlink packets that are lost before the queue. The queues are
    drop-tail. `bandwidth_bps` is B_x of thesis 4.3.4 and 4.3.5, what the algorithms take
    for the link's capacity; 1.3 times the true rate reproduces the thesis' link Δ.
    `between_runs` is the standard deviation of the rates from run to run over their mean.
    What models the scenario gives the link stands in the settings of these, else None.
    """

    kind: LinkKind
    device: str
    down_rate_bps: int
    up_rate_bps: int
    rtt_s: float
    jitter_s: float
    loss_ratio: float
    loss_burst_packets: float
    queue_down_bytes: int
    queue_up_bytes: int
    bandwidth_bps: int
    between_runs: float = 0.0
    trace: Trace | None = None
    on_off: OnOffSettings | None = None
    carriers: CarrierSettings | None = None
    rrc: RrcSettings | None = None
    wifi: WifiSettings | None = None

    @property
    def access_points(self) -> tuple[str, ...]:
        """The names of the access points that the client may be attached to."""
        if self.wifi is None:
            return ()
        return tuple(point.name for point in self.wifi.roaming.access_points)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Constants of the thesis' algorithms, the same in all scenarios unless said otherwise.

    `upper_limit_bytes` U of algorithm 1 (thesis 4.3.3), `padding` f of padded algorithm 3
    (4.3.5), `overlap` the share of a request after which the next is issued, `window_s` over
    which throughput is taken, `first_request_bytes` the initial size that the links share. The
    defaults are those of multilink, which says where they come from.
    """

    upper_limit_bytes: int = DEFAULTS.upper_limit_bytes
    padding: float = DEFAULTS.padding
    overlap: float = DEFAULTS.overlap
    window_s: float = DEFAULTS.window_ns / 1e9
    first_request_bytes: int = DEFAULTS.first_request_bytes


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication reports for one algorithm in this scenario.

    `spread` is the standard deviation of the runs' rates over their median.
    """

    algorithm: str
    download_s: float
    source: str = ""
    link_delta_s: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Anything else that a publication reports for this scenario, in words: "time of eMPTCP
    against MPTCP", "+22 %".
    """

    what: str
    value: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A validated scenario: one to `MAX_LINKS` links by name, in the order of `in_order`.

    `path` is the file it was read from and not part of equality.
    """

    name: str
    title: str
    description: str
    source: str
    payload: Payload
    links: dict[str, LinkSettings]
    events: tuple[Event, ...] = ()
    tcp: TcpSettings = TcpSettings()
    client: ClientSettings = ClientSettings()
    published: tuple[Published, ...] = ()
    findings: tuple[Finding, ...] = ()
    step_s: float = STEP_S
    sample_s: float = SAMPLE_S
    path: Path | None = field(default=None, compare=False)


def default_queue_bytes(rate_bps: int) -> int:
    """Drop-tail queue of max(1 MB, 0.4 s of the rate), an assumption for LTE and Wi-Fi.

    Not more than 1 GB, which only rates above 20 Gbit/s would ask for.
    """
    return min(max(1_000_000, rate_bps * 4 // 10 // 8), MAX_QUEUE_BYTES)


def default_bandwidth_bps(down_rate_bps: int) -> int:
    """1.3 times the true rate: reproduces the link Δ of 2.6-4.6 s of thesis table 5.10."""
    return down_rate_bps * 13 // 10
