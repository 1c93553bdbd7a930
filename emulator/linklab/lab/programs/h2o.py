"""Fills in H2O's configuration, server/h2o.conf. Pure, except for reading the templates."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from linklab.core.limits import MAX_SENT_BYTES
from linklab.core.paths import SERVER_CONFIGURATION, SERVER_EXCHANGE
from linklab.core.placeholders import filled

_NO_LATENCY_OPTIMIZATION = "http2-latency-optimization-min-rtt: 4294967295\n"
"""Disables an optimisation of H2O. From a round trip of 50 ms on, H2O lets the kernel hold at most
1 unsent byte (TCP_NOTSENT_LOWAT). For TCP this only controls notifications. Multipath TCP really
takes no more than that byte (Linux 6.12, net/mptcp/protocol.c, mptcp_send_limit), and its packets
had 1 to 17 bytes."""


def configuration(
    address: tuple[str, int],
    certificate: Path,
    key: Path,
    directory: Path,
    *,
    access_log: Path,
    error_log: Path,
    user: str | None = None,
    uploads: Path | None = None,
    plain_port: int | None = None,
    mptcp: bool = False,
    also_on: tuple[str, ...] = (),
) -> str:
    """Returns H2O's configuration for serving `directory` on `address`.

    `user` is the user that H2O becomes when started as root, None if it is not root. With `uploads`
    it also answers messages and keeps uploads there (server/exchange.rb). On `plain_port` it also
    speaks HTTP without TLS. `mptcp` tells that its connections may be Multipath TCP's. It serves
    the same `also_on` further addresses, on the same ports.
    """
    more = [_listen(host, address[1]) + _tls(certificate, key) for host in also_on]
    if plain_port is not None:
        more += [_listen(host, plain_port) for host in (address[0], *also_on)]
    values = {
        "address": address[0],
        "port": address[1],
        "certificate": _quoted(certificate),
        "key": _quoted(key),
        "directory": _quoted(directory),
        "latency": _NO_LATENCY_OPTIMIZATION if mptcp else "",
        "become": "" if user is None else f"user: {user}",
        "access_log": _quoted(access_log),
        "error_log": _quoted(error_log),
        "more": "".join(more),
        "bodies": "" if uploads is None else f"limit-request-body: {MAX_SENT_BYTES}\n",
        "exchange": "" if uploads is None else _exchange(directory, uploads),
    }
    return filled(SERVER_CONFIGURATION.read_text(), values)


def _listen(host: str, port: int) -> str:
    return f"    listen:\n      host: {host}\n      port: {port}\n"


def _tls(certificate: Path, key: Path) -> str:
    """Returns the settings for TLS of a listener, as those of the first one."""
    lines = (
        "neverbleed: OFF",
        "ocsp-update-interval: 0",
        f"certificate-file: {_quoted(certificate)}",
        f"key-file: {_quoted(key)}",
        "minimum-version: TLSv1.2",
    )
    return "      ssl:\n" + "".join(f"        {line}\n" for line in lines)


def _exchange(directory: Path, uploads: Path) -> str:
    """Returns the handler. H2O reads it with its configuration, before it gives up its rights."""
    places = f"DIRECTORY = {_in_ruby(directory)}\nUPLOADS = {_in_ruby(uploads)}\n"
    code = textwrap.indent(places + SERVER_EXCHANGE.read_text(), " " * 10)
    return f"        mruby.handler: |\n{code}"


def _in_ruby(path: Path) -> str:
    """Returns a path as a Ruby string. A # would begin an expression."""
    return _quoted(path).replace("#", "\\#")


def _quoted(path: Path) -> str:
    return json.dumps(str(path), ensure_ascii=False)
