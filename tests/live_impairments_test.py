"""Tests that a user impairs the links of a running lab, whose scenario has no impairments."""

import contextlib
import math
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Linklab, ScenarioFile, until
from datagrams import NO_ANSWER_S, Association, echo
from through_the_lab import PATIENCE_S, ProxiedLab, fetched, needs_outside, proxied, served

pytestmark = [
    pytest.mark.one_at_a_time("rates"),
    needs_outside,
]

WIFI, LTE = (
    "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
    "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
)


class Probe:
    """Sends datagrams over one link of a lab, to a server that answers each."""

    def __init__(self, lab: ProxiedLab, link: str, port: int) -> None:
        self._lab, self._link, self._port = lab, link, port
        self.association = Association(lab.ports[link])

    def change(self, *words: str) -> None:
        """Changes the link."""
        self._lab.linklab("link", self._link, *words)

    def rtt_s(self, below_s: float = math.inf) -> float:
        """Returns the shortest round trip, once it is shorter than that. A busy machine adds to it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.association.rtt_s("10.0.1.1", self._port)) >= below_s:
            assert time.monotonic() < deadline, found
        return found

    def ask(self, size: int = 100, patience_s: float = PATIENCE_S) -> bytes | None:
        """Returns the answer to a datagram of a size, None without one in time."""
        return self.association.ask("10.0.1.1", self._port, bytes(size), patience_s=patience_s)

    def is_lost(self, size: int = 100) -> bool:
        """Tells whether a datagram of a size gets no answer."""
        return self.ask(size, NO_ANSWER_S) is None

    def waiting(self) -> int:
        """Returns how many further answers come, up to a pause of two seconds."""
        found = 0
        self.association.udp.settimeout(NO_ANSWER_S)
        with contextlib.suppress(TimeoutError):
            while self.association.udp.recv(1 << 16):
                found += 1
        return found


def test_every_impairment_is_felt_at_once(tmp_path: Path, scenario: ScenarioFile) -> None:
    file = scenario("impaired", size="1 MB", wifi=WIFI, lte=LTE)
    with echo() as port, proxied(tmp_path, file, f"http://127.0.0.1:{port}/") as lab:
        probe = Probe(lab, "lte", port)
        assert probe.ask() is not None
        probe.change("impair_up", "delay: 100 ms")
        assert probe.rtt_s() > 0.12
        probe.change("impair_down", "delay: 100 ms")
        assert probe.rtt_s() > 0.22
        probe.change("impair_down", "delay: 0 s")
        assert probe.rtt_s(below_s=0.22) > 0.12
        probe.change("impair_down", "duplicate: 100 %")
        assert probe.ask() is not None
        assert probe.waiting() == 1, "the answer came twice"
        probe.change("impair_down", "duplicate: 0 %, mtu: 600 B, black_hole: true")
        assert probe.ask(500) is not None
        assert probe.is_lost(1000)
        probe.change("restore")
        assert probe.ask(1000) is not None
        assert probe.rtt_s(below_s=0.12) > 0.02
        probe.change("impair_up", "loss: 100 %", "--for", "6 s")
        assert probe.is_lost()
        until(lambda: not probe.is_lost(), "the loss ends by itself")
        probe.waiting()
        probe.change("impair_up", "nat_udp: 3 s")
        first, again = probe.ask(), probe.ask()
        time.sleep(4)  # The NAT forgets the flow meanwhile.
        assert first == again
        assert probe.ask() not in (None, first), "the server sees another port"
        wifi = Probe(lab, "wifi", port)
        assert wifi.ask() is not None, "the other link is as it was"
        _what_is_refused(lab)
        _what_is_shown(lab)


def test_connections_are_broken_by_hand(tmp_path: Path, scenario: ScenarioFile) -> None:
    """The first fault also resets what is open. The other link stays as it was."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(bytes(1_000_000))
    file = scenario("broken", size="1 MB", wifi=WIFI, lte=LTE)
    with served(tmp_path / "served") as url, proxied(tmp_path, file, f"{url}file") as lab:

        def get(link: str) -> int:
            return len(fetched(lab.origin, lab.proxy(link, "socks5h")) or b"")

        assert get("lte") == 1_000_000
        for fault in ("reset_bytes: 100 kB", "close_bytes: 1 MB", "reset_after: 50 ms"):
            lab.linklab("link", "lte", "impair_down", fault)
            assert get("lte") == 0
            assert get("wifi") == 1_000_000
            lab.linklab("link", "--restore")
            assert get("lte") == 1_000_000


QDISCS = (
    "for one in /proc/1/fd/*; do nsenter --net=$one tc qdisc show 2> /dev/null; done"
    ' | grep -o "qdisc .* dev mid-[a-z]*"'
)
"""Shows the queue disciplines of the middleboxes. Only the first process holds their namespaces."""


def test_a_middlebox_without_impairments_passes_packets_at_once(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("plain", size="1 MB", wifi=WIFI, lte=f"{LTE}, impair_up: {{loss: 1 %}}")
    done = linklab("exec", file, "--clock", "real", "--", "bash", "-c", QDISCS)
    assert done.code == 0, done.err
    shown = [line.split() for line in done.out.splitlines() if line.startswith("qdisc")]
    assert sorted((device, kind) for _, kind, *_, device in shown) == [
        ("mid-epc", "netem"),
        ("mid-isp", "noqueue"),
        ("mid-server", "netem"),
        ("mid-server", "noqueue"),
    ]


def _what_is_refused(lab: ProxiedLab) -> None:
    for words, said in (
        (("impair_up", "loss: 1"), "impair_up.loss: '1' has no unit; allowed: a ratio"),
        (("impair_up", "reorder: 1 %"), "needs a delay, which the packets skip"),
        (("impair_down", "nat_tcp: 1 h"), "a NAT belongs to the uplink"),
    ):
        with pytest.raises(AssertionError, match=said):
            lab.linklab("link", "lte", *words)


def _what_is_shown(lab: ProxiedLab) -> None:
    lab.linklab("link", "wifi", "impair_up", "loss: 1 %, delay: 5 ms")
    lab.linklab("link", "wifi", "impair_up", "loss: 2 %")

    def now() -> Any:
        return lab.status()["now"]["links"]["wifi"]

    until(lambda: now()["impaired"]["impair_up"] == {"loss": "2 %", "delay": "5 ms"}, now)
    assert now()["by_hand"] == ["impair_up.delay 5 ms", "impair_up.loss 2 %"]
