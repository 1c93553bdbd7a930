"""Tests IPv6 alone, and links of different families, in the guest in virtual time."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, Linklab, compared, downloaded, is_in_part, lines, succeeded
from linklab.core.paths import PROFILES
from linklab.importers.packet_file import PacketFile
from linklab.regression import suite

ETHERTYPES = {"4": 0x0800, "6": 0x86DD}
PROTOCOL_AT = {0x0800: 14 + 9, 0x86DD: 14 + 6}
TCP = 6
FIRST = 7
"""The default suite's first downloads: those of static-80-50."""

ROAMING = (
    "down: 30 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, radio: {standard: ac, width: 80 MHz, loss: 0 %, "
    "handover: full-scan-dhcp, access_points: "
    "[{name: apa, signal: -50 dBm}, {name: apb, signal: -50 dBm}]}"
)

Lab = Callable[..., Path]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Writes a scenario with these families of the network, of Wi-Fi and of LTE."""

    def write(
        families: tuple[str, str, str],
        *,
        wifi: str = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 20 ms",
        lte: str = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 60 ms",
        size: str = "20 MB",
        more: str = "",
    ) -> Path:
        network, of_wifi, of_lte = families
        file = tmp_path / f"ip-{'-'.join(families)}.yaml"
        file.write_text(
            f"name: {file.stem}\npayload: {{size: {size}}}\nnetwork: {{ip: {network}}}\nlinks:\n"
            f"  wifi: {{{wifi}, ip: {of_wifi}}}\n  lte: {{{lte}, ip: {of_lte}}}\n{more}"
        )
        return file

    return write


ALONE, MIXED, BOTH = ("6", "6", "6"), ("both", "4", "6"), ("both", "both", "both")


def packets(run_dir: Path, link: str) -> Counter[tuple[int, int]]:
    """Returns how many packets of each ethertype and protocol a link's capture has."""
    found: Counter[tuple[int, int]] = Counter()
    with (run_dir / f"{link}.pcap").open("rb") as captured:
        for one in PacketFile(captured):
            ethertype = int.from_bytes(one.content[12:14], "big")
            found[ethertype, one.content[PROTOCOL_AT.get(ethertype, 0)]] += 1
    return found


@pytest.mark.parametrize("kind", [0, 1], ids=["alone", "mixed"])
def test_the_default_suite_s_first_downloads_succeed(linklab: Linklab, lab: Lab, kind: int) -> None:
    """`make test` runs every other one over links of each kind."""
    loaded = suite.load(PROFILES / "regression/default.yaml")
    first = [one.cell for one in loaded.planned[:FIRST]]
    assert {one.scenario for one in first} == {"static-80-50"}
    some = [one.algorithm for column, one in enumerate(first) if is_in_part(kind, column, 2)]
    words = (lab((ALONE, MIXED)[kind], size="10 MB"), "-a", ",".join(some))
    (comparison,) = succeeded(linklab, "compare", *words).json["comparisons"]
    assert len(comparison["rows"]) == len(some)
    for row in comparison["rows"]:
        assert row["failures"] == [], row["algorithm"]
        links = 1 if row["algorithm"].startswith("single") else 2
        used = [one for one in row["links"].values() if one["share"] > 0]
        assert len(used) == links, row["algorithm"]


@pytest.mark.parametrize(
    ("client", "families"),
    [
        ("adaptive", ALONE),
        ("adaptive", BOTH),
        ("mptcp", MIXED),
        ("aria2-8", MIXED),
    ],
)
def test_links_carry_tcp_of_their_family_and_nothing_else(
    linklab: Linklab, lab: Lab, client: str, families: tuple[str, str, str]
) -> None:
    """No solicitation, no report of a multicast group, no other family's attempt."""
    file = lab(families, size="10 MB")
    _, run_dir = downloaded(linklab, file, client, "--pcap", "all")
    for link, family in zip(("wifi", "lte"), families[1:], strict=True):
        ethertype = ETHERTYPES["6" if family == "both" else family]
        found = packets(run_dir, link)
        assert list(found) == [(ethertype, TCP)]
        assert found[ethertype, TCP] > 100


def test_a_header_of_ipv6_costs_20_bytes_of_each_packet(linklab: Linklab, lab: Lab) -> None:
    runs = compared(linklab, lab(("4", "4", "4")), lab(ALONE), who="single-wifi")
    four, six = (runs[f"ip-{ip}-{ip}-{ip}-single-wifi"][0] for ip in (4, 6))
    # 1448 B of a packet are payload, or 1428 B. The start-up phase is the same.
    assert six["download_s"] / four["download_s"] == pytest.approx(1448 / 1428, rel=0.004)
    assert six["efficiency"] == pytest.approx(four["efficiency"], abs=0.005)


def test_addresses_survive_a_lost_carrier_and_change_with_a_lease(
    linklab: Linklab, lab: Lab
) -> None:
    events = (
        "events:\n  - {at: 500 ms, link: lte, carrier: down, for: 1 s}\n"
        "  - {at: 1 s, link: wifi, handover: next}\n"
    )
    file = lab(ALONE, wifi=ROAMING, size="30 MB", more=events)
    (first, run_dir), (again, _) = (downloaded(linklab, file, "adaptive") for _ in range(2))
    assert first["download_s"] == again["download_s"]
    assert all(one["share"] > 0.2 for one in first["links"].values())
    served = {line["client"] for line in lines(run_dir / "h2o-access.jsonl")}
    assert served == {"2001:db8:1::2", "2001:db8:1::3", "2001:db8:2::2"}


def test_traffic_and_further_clients_use_the_families_too(linklab: Linklab, lab: Lab) -> None:
    more = (
        "clients: 2\ntraffic:\n  - {link: wifi, bulk: {}}\n"
        "  - {link: lte, direction: up, call: {rate: 1 Mbit/s}}\n"
    )
    _, run_dir = downloaded(linklab, lab(MIXED, more=more), "adaptive", "--pcap", "all")
    bulk, call = lines(run_dir / "traffic.jsonl")
    assert bulk["received_bytes"] > 1_000_000
    assert (call["sent_packets"] > 10, call["lost_packets"]) == (True, 0)
    served = {line["client"] for line in lines(run_dir / "h2o-access.jsonl")}
    assert len(served) == 4, "an address of each client on each link"
    for link, family in zip(("wifi", "lte"), MIXED[1:], strict=True):
        assert list(packets(run_dir, link)) == [(ETHERTYPES[family], TCP)]


def probed(linklab: Linklab, file: Path) -> Any:
    """Returns what `probes/ipv6.py` tells of LTE."""
    words = (file, "--", "python3", PROBES / "ipv6.py", "rmnet0")
    run_dir = succeeded(linklab, "exec", *words).run_dir
    return json.loads((run_dir / "client.out").read_text())


def test_names_and_datagrams_of_both_families(linklab: Linklab, lab: Lab) -> None:
    found = probed(linklab, lab(MIXED))
    assert found["names"] == [["10.0.0.1"], ["2001:db8::1"]]
    assert found["asked"] == [1, 1]
    assert (found["from"], found["ecn"], found["told"]) == ("2001:db8:2::2", [2, 2], 1500)


def test_impairments_of_ipv6(linklab: Linklab, lab: Lab) -> None:
    lte = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 60 ms, impair_down: {bleach_ecn: true}"
    found = probed(linklab, lab(ALONE, lte=f"{lte}, impair_up: {{mtu: 1300 B}}"))
    assert found["names"] == [[], ["2001:db8::1"]]
    assert found["asked"] == [0, 1]
    assert (found["ecn"], found["told"]) == ([2, 0], 1300)


def test_a_server_of_one_s_own_listens_for_both(
    linklab: Linklab, lab: Lab, nginx: str, tmp_path: Path
) -> None:
    script = Path(nginx)
    text = script.read_text().replace("$LINKLAB_ADDRESS", "[$LINKLAB_ADDRESS]")
    script.write_text(text.replace("ssl http2;", "ssl http2 ipv6only=off;"))
    words = ("adaptive", "--server", nginx, "--share", tmp_path)
    figures, _ = downloaded(linklab, lab(MIXED), *words)
    assert all(one["share"] > 0.2 for one in figures["links"].values())


def test_a_family_that_the_server_refuses_costs_a_round_trip(
    linklab: Linklab, lab: Lab, nginx: str, tmp_path: Path
) -> None:
    """The server has an IPv6 address on which nothing listens. Each connection goes on by IPv4."""
    script = Path(nginx)
    script.write_text(script.read_text().replace("$LINKLAB_ADDRESS", "0.0.0.0"))
    words = ("adaptive", "--share", tmp_path, "--server", nginx, "--pcap", "all")
    tried, run_dir = downloaded(linklab, lab(BOTH), *words)
    for link in ("wifi", "lte"):
        found = packets(run_dir, link)
        assert set(found) == {(0x0800, TCP), (0x86DD, TCP)}
        assert found[0x0800, TCP] > 100 * found[0x86DD, TCP]
    alone, _ = downloaded(linklab, lab(("4", "4", "4")), *words)
    assert alone["download_s"] < tried["download_s"] < alone["download_s"] + 2 * 0.06


def test_a_server_of_ipv4_alone_is_refused_where_a_link_has_ipv6_alone(
    linklab: Linklab, lab: Lab, tmp_path: Path
) -> None:
    serve = "python3 -m http.server --bind 0.0.0.0 {port}"
    done = linklab("run", lab(MIXED), "-a", "adaptive", "--server", serve, "--port", 8080)
    assert done.code != 0
    assert (
        "does not listen on port 8080 of 2001:db8::1, for link lte has IPv6 only, by TCP or UDP, "
        "but on tcp 0.0.0.0:8080"
    ) in done.err
