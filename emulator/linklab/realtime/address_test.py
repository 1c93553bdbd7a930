"""Tests address.py."""

import pytest

from linklab.realtime import address


def test_addresses() -> None:
    assert address.parse("127.0.0.1:9464") == ("127.0.0.1", 9464)
    assert address.parse("[::1]:1") == ("::1", 1)
    assert address.parse(":80") == ("0.0.0.0", 80)
    assert address.parse("9464") == ("127.0.0.1", 9464)
    for bad in ("127.0.0.1", "x:y", "x:70000", "70000", ""):
        with pytest.raises(ValueError, match="allowed: an address such as"):
            address.parse(bad)


def test_where_a_proxy_listens() -> None:
    assert address.parse_proxy("0") == ("127.0.0.1", 0), "a free port"
    assert address.parse_proxy("8080") == ("127.0.0.1", 8080)
    assert address.parse_proxy("0.0.0.0:8080") == address.parse_proxy(":8080") == ("0.0.0.0", 8080)
    for bad in ("", "x", "65536", "localhost:80", "[::1]:80", "192.0.2.7:"):
        with pytest.raises(ValueError, match=r"allowed: a port such as 8080, or an IPv4 address"):
            address.parse_proxy(bad)


def test_how_this_machine_reaches_a_server() -> None:
    assert address.from_here(("0.0.0.0", 80)) == ("127.0.0.1", 80)
    assert address.from_here(("::", 80)) == ("::1", 80)
    assert address.from_here(("192.0.2.7", 80)) == ("192.0.2.7", 80)


def test_what_is_this_machines_alone() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert address.is_loopback(host)
    for host in ("0.0.0.0", "::", "192.0.2.7", "127.0.0.1.example", "localhost.example", ""):
        assert not address.is_loopback(host)
