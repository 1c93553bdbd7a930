"""Tells who may read a live lab and who may command it, by the headers of a request. Pure.

Web pages of other sites cannot send commands. The token is in a header for which a browser asks the
lab first, and the lab allows no site. Requests of other origins are refused. So are requests with
another host name, against DNS rebinding.
"""

from __future__ import annotations

import hmac
import ipaddress
from email.message import Message

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


def host_is_ours(headers: Message) -> bool:
    """Tells whether a request's host is `localhost` or an IP address.

    Nobody can rebind an address, because browsers look up no name (DNS rebinding). A container is
    reached by addresses that it does not know, such as that of its engine's bridge.
    """
    host = str(headers.get("Host", ""))
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


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
