import ipaddress

import pytest

from linklab.core.ip_family import in_family, in_url, in_words


@pytest.mark.parametrize(
    ("plan", "there"),
    [
        ("10.0.0.1", "2001:db8::1"),
        ("10.1.0.2", "2001:db8:1::2"),
        ("10.8.10.1", "2001:db8:8:10::1"),
        ("10.1.0.251", "2001:db8:1::251"),
        ("10.1.0.0/24", "2001:db8:1::/64"),
        ("10.0.0.1/32", "2001:db8::1/128"),
        ("0.0.0.0/0", "::/0"),
    ],
)
def test_every_address_of_the_plan_has_one_of_ipv6(plan: str, there: str) -> None:
    assert in_family(plan, 4) == plan
    assert in_family(plan, 6) == there


def test_no_two_addresses_share_one() -> None:
    plan = [f"10.{a}.{b}.{c}" for a in range(9) for b in range(0, 255, 7) for c in range(1, 255, 5)]
    there = [in_family(one, 6) for one in plan]
    assert len(set(there)) == len(plan)
    assert [str(ipaddress.IPv6Address(one)) for one in there] == there
    for one, other in zip(plan, there, strict=True):
        network = in_family(f"{one.rpartition('.')[0]}.0/24", 6)
        assert ipaddress.IPv6Address(other) in ipaddress.IPv6Network(network)


def test_a_url_has_brackets_around_colons() -> None:
    assert [in_url(one) for one in ("10.0.0.1", "server", "2001:db8::1")] == [
        "10.0.0.1",
        "server",
        "[2001:db8::1]",
    ]
    assert [in_words(one) for one in ((4,), (6,), (4, 6))] == ["IPv4", "IPv6", "IPv4 and IPv6"]
