"""Tells who may read a live lab and who may command it, by the headers of a request. Pure.

Web pages of other sites cannot send commands. The token is in a header for which a browser asks the
lab first, and the lab allows no site. Requests of other origins are refused. So are requests with
another host name, against DNS rebinding.
"""

from __future__ import annotations

import hmac
import ipaddress
from email.message import Message

from linklab.realtime.address import is_loopback, without_mapping
from linklab.realtime.link_command import GUARD

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""The headers of the page: it runs its own files only, asks the lab only, and is in no frame."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of all answers."""


def host_is_ours(headers: Message, here: str) -> bool:
    """Tells whether a request's host is this machine's name or the address that received it.

    A rebound name is neither (DNS rebinding).
    """
    name = _host(headers)
    return without_mapping(name) == without_mapping(here) or is_loopback(name)


def host_is_address(headers: Message) -> bool:
    """Tells whether a request's host is an IP address.

    Nobody can rebind it, because browsers look up no name. A container is reached by addresses that
    it does not know, such as that of its engine's bridge.
    """
    try:
        ipaddress.ip_address(_host(headers))
    except ValueError:
        return False
    return True


def _host(headers: Message) -> str:
    """Returns the host of a request without its port."""
    host = str(headers.get("Host", ""))
    return host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]


def origin_is_ours(headers: Message) -> bool:
    """Tells whether no page of another origin sent the request.

    Browsers always send the origin with a command.
    """
    origin = headers.get("Origin")
    site = headers.get("Sec-Fetch-Site", "none")
    return site in ("none", "same-origin") and origin in (None, f"http://{headers['Host']}")


def has_token(headers: Message, token: str) -> bool:
    """Tells whether a request knows the lab's token, in a time that does not tell how much of it."""
    return hmac.compare_digest(headers.get(GUARD, "").encode(), token.encode())
