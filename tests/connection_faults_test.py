"""Tests that connections are reset, ended and sliced to the byte, in the guest and in virtual time."""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, Linklab, ScenarioFile
from linklab.core.ip_family import IPV6, in_family
from linklab.core.paths import MULTILINK

Ends = Callable[..., list[list[Any]]]

SIZE, PORT = 1_000_000, 8000
LINK = "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 40 ms"
RTT_S = 0.04


@pytest.fixture
def ends(linklab: Linklab, scenario: ScenarioFile) -> Ends:
    """Downloads a megabyte from a server of the user's. Returns what `probes/cut.py` tells."""

    def download(
        wifi: str, more: str = "", host: str = "10.0.0.1", port: int = PORT, times: int = 1
    ) -> list[list[Any]]:
        file = scenario("cut", wifi=f"{LINK}, {wifi}", more=more)
        serve = f"python3 {shlex.quote(str(PROBES / 'cut.py'))} serve {PORT} {PORT + 1}"
        get = ("python3", PROBES / "cut.py", "get", host, port, times, 0.5)
        done = linklab("exec", file, "--server", serve, "--port", PORT, "--json", "--", *get)
        assert done.code == 0, done.err
        out = Path(done.json["run_dir"], "client.out").read_text()
        return [json.loads(line) for line in out.splitlines()]

    return download


IPV6_TOO = "network: {ip: both}\n"
SERVER_6 = in_family("10.0.0.1", IPV6)


@pytest.mark.parametrize(
    ("wifi", "received", "failed", "where"),
    [
        ("impair_down: {reset_bytes: 300001 B}", 300_001, "ECONNRESET", {}),
        ("impair_down: {close_bytes: 300001 B}", 300_001, "", {}),
        ("impair_down: {close_bytes: 2 MB}", SIZE, "", {}),
        ("impair_up: {reset_bytes: 999 B}", 0, "ECONNRESET", {}),
        ("impair_up: {close_bytes: 1000 B}", 0, "", {}),
        ("impair_down: {reset_bytes: 1 B, loss: 1 %}", 1, "ECONNRESET", {}),
        (
            "impair_down: {reset_bytes: 300 kB}",
            300_000,
            "ECONNRESET",
            {"more": IPV6_TOO, "host": SERVER_6},
        ),
        (
            "impair_down: {close_bytes: 300 kB}, impair_up: {nat_tcp: 1 h}",
            300_000,
            "",
            {},
        ),
        ("impair_down: {reset_bytes: 9 B, fault_port: 8001}", SIZE, "", {}),
        (
            "impair_down: {reset_bytes: 9 B, fault_port: 8001}",
            9,
            "ECONNRESET",
            {"port": PORT + 1},
        ),
    ],
)
def test_a_connection_ends_after_its_bytes(
    ends: Ends, wifi: str, received: int, failed: str, where: dict[str, Any]
) -> None:
    (end,) = ends(wifi, **where)
    assert end[:2] == [received, failed]


def test_a_connection_is_reset_after_its_time(ends: Ends) -> None:
    """The relay has the connection after one and a half round trips. The reset takes half of one."""
    (end,) = ends("impair_down: {reset_after: 200 ms, slice: 1 B, slice_pause: 10 s}")
    assert end[:2] == [1, "ECONNRESET"]
    assert end[3] == pytest.approx(1.5 * RTT_S + 0.2 + RTT_S / 2, abs=0.0005)


def test_data_comes_in_pieces_with_pauses(ends: Ends) -> None:
    (end,) = ends("impair_down: {slice: 10 kB, slice_pause: 20 ms}")
    assert end[0] == SIZE
    firsts_s = [end[2][0]]
    for seen_s in end[2]:
        if seen_s - firsts_s[-1] > 0.015:
            firsts_s.append(seen_s)
    assert len(firsts_s) == SIZE // 10_000
    # The first pieces are longer on the way, while the congestion window is smaller than a piece.
    pauses_s = [two - one for one, two in itertools.pairwise(firsts_s[3:])]
    assert pauses_s == pytest.approx([0.02] * len(pauses_s), abs=1e-6)


def test_an_event_breaks_open_connections_and_new_ones_for_its_time(ends: Ends) -> None:
    """Connections begin every 0.5 s, or when the one before has ended."""
    event = "events: [{at: 1 s, for: 800 ms, link: wifi, impair_down: {reset_after: 10 ms}}]\n"
    found = ends("loss: 0 %", event, times=5)
    assert [failed for _, failed, *_ in found] == ["", *["ECONNRESET"] * 3, ""]
    assert [received == SIZE for received, *_ in found] == [True, False, False, False, True]
    open_then, *_ = found[1:]
    assert 1.01 + RTT_S / 2 < open_then[3] < 1.01 + 2 * RTT_S


def test_the_server_s_port_is_reset_for_any_program(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """curl over TLS from the lab's own server: 18 is a partial file, 56 a failure to receive."""
    for fault, code in (("close_bytes: 500 kB", 18), ("reset_bytes: 500 kB", 56)):
        file = scenario("any", size="1 MB", wifi=f"{LINK}, impair_down: {{{fault}}}")
        curl = "curl --http1.1 -sS --interface wlan0 --cacert {ca} -o got {url}"
        done = linklab("exec", file, "--", "sh", "-c", f"{curl}; echo code $?; wc -c < got")
        words = done.out.split()
        assert f"code {code}" in done.out, done.out
        assert 480_000 < int(words[words.index(str(code)) + 1]) < 500_000


FAULTS = (
    *("reset_bytes: {} kB", "close_bytes: {} kB", "reset_after: {} ms"),
    "slice: {}00 B, slice_pause: 1 ms",
)
GET = (
    f"{shlex.quote(str(MULTILINK))} get {{url}} --link wifi=wlan0 --link lte=rmnet0 --ca-file {{ca}}"
    " -o {output} --quiet --give-up 5s --bandwidth wifi=20mbit --bandwidth lte=20mbit"
)
OTHERS = ("alg1", "alg2", "alg3", "alg1-limited", "naive")


@pytest.mark.parametrize("seed", range(4))
def test_a_file_is_right_or_an_error(linklab: Linklab, scenario: ScenarioFile, seed: int) -> None:
    """Whatever breaks, and with whatever algorithm. `adaptive` brings it over what is left."""
    draws = random.Random(seed)

    def fault() -> str:
        return draws.choice(FAULTS).format(round(10 ** draws.uniform(0.1, 3.5)))

    events = "".join(
        f"  - {{at: {k * 200} ms, link: {draws.choice(('wifi', 'lte'))}, for: 1 s, "
        f"impair_{draws.choice(('down', 'down', 'up'))}: {{{fault()}}}}}\n"
        for k in range(1, 60)
    )
    file = scenario("cut", size="3 MB", wifi=LINK, lte=LINK, more=f"events:\n{events}")
    get = "; ".join(
        f"{GET} --algorithm {one}; echo code $? saved $(sha256sum < {{output}} | cut -c -64);"
        " rm -f {output}*"
        for one in ("adaptive", "adaptive", *draws.sample(OTHERS, 2))
    )
    done = linklab("exec", file, "--", "sh", "-c", f"echo served $LINKLAB_SHA256; {get}")
    (_, served), *ends = re.findall(r"(?:served|code (\d+) saved) ?(\w*)", done.out)
    assert ends[:2] == [("0", served)] * 2
    assert all(end in (("0", served), ("1", "")) for end in ends), ends
    assert len(ends) == 4
