"""netem options that pyroute2 0.9 lacks: the random seed and nanosecond times.

Importing this module teaches pyroute2 the attributes that the kernel numbers
after TCA_NETEM_RATE (linux/pkt_sched.h); a wrong order would set something else.
"""

from __future__ import annotations

from typing import Any

from pyroute2.netlink.rtnl.tcmsg import sched_netem

_ATTRIBUTES = (
    ("TCA_NETEM_ECN", "uint32"),
    ("TCA_NETEM_RATE64", "uint64"),
    ("TCA_NETEM_PAD", "none"),
    ("TCA_NETEM_LATENCY64", "int64"),
    ("TCA_NETEM_JITTER64", "int64"),
    ("TCA_NETEM_SLOT", "hex"),
    ("TCA_NETEM_SLOT_DIST", "hex"),
    ("TCA_NETEM_PRNG_SEED", "uint64"),
)

_get_parameters = sched_netem.get_parameters


def _parameters(keywords: dict[str, Any]) -> dict[str, Any]:
    """pyroute2's netem parameters plus `latency_ns`, `jitter_ns`, `seed` and `byte_rate`.

    `byte_rate` is netem's rate: pyroute2 would take a `rate` for the message's TCA_RATE.
    """
    options: dict[str, Any] = _get_parameters({**keywords, "rate": keywords.get("byte_rate")})
    for keyword, attribute in (
        ("latency_ns", "TCA_NETEM_LATENCY64"),
        ("jitter_ns", "TCA_NETEM_JITTER64"),
        ("seed", "TCA_NETEM_PRNG_SEED"),
    ):
        if keyword in keywords:
            options["attrs"].append([attribute, keywords[keyword]])
    return options


def install() -> None:
    """Extends pyroute2's netem messages; a second call changes nothing."""
    known = {name for name, _ in sched_netem.options.nla_map}
    if _ATTRIBUTES[-1][0] not in known:
        sched_netem.options.nla_map += _ATTRIBUTES
        sched_netem.get_parameters = _parameters
