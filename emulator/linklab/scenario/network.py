"""Defines the keys of `network`, and the key `ip` of links: the families of addresses, a proxy. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from linklab.core.ip_family import IPV4, IPV6, ONLY_IPV4, Families, in_words
from linklab.models.keys import LENGTH
from linklab.schema.mapping import Mapping, one_of
from linklab.schema.quantities import Quantity
from linklab.schema.rows import Row, Table

_FAMILIES: Final[dict[str, Families]] = {"4": (IPV4,), "6": (IPV6,), "both": (IPV4, IPV6)}
_word = one_of(*_FAMILIES)


def _form(families: Families) -> Any:
    return families[0] if len(families) == 1 else "both"


IP: Final = Quantity(lambda text: _FAMILIES[_word(text)], _form, ", ".join(_FAMILIES))


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The families of the server's addresses. Links have the same ones, or some of them. With a
    `proxy_rtt_s`, connections end at a proxy before the server (`lab/programs/server_proxy.py`)."""

    families: Families = ONLY_IPV4
    proxy_rtt_s: float | None = None


TABLE: Final = Table(
    NetworkSettings,
    (
        Row("ip", "families", IP, "IPv4, IPv6 or both: of the server, and of links without `ip`"),
        Row(
            "proxy",
            "proxy_rtt_s",
            LENGTH,
            "connections end at a proxy at the server's address, as those of ShadowSocks do. It connects "
            "to H2O by TCP, over this round trip. `requests.jsonl` is missing then",
            unset=None,
            default="no proxy",
        ),
    ),
)


def families_of(link: Mapping, own: Families | None, network: NetworkSettings) -> Families:
    """Returns a link's families: its `own`, or the network's. Refuses those that the server has
    not."""
    if own is None:
        return network.families
    missing = tuple(one for one in own if one not in network.families)
    if missing:
        link.fail(
            "ip",
            f"the server has {in_words(network.families)} only, not {in_words(missing)}; "
            f"allowed: {_form(network.families)}, or both in network: {{ip: both}}",
        )
    return own
