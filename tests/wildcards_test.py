"""Tests that programs on all addresses answer from the address that was asked, over every link."""

import shlex
import sys
from pathlib import Path

from conftest import PROBES, Linklab, lines, succeeded

PROBE = shlex.join([sys.executable, str(PROBES / "wildcards.py")])
SERVER = "10.0.0.1"
ROAMING = """\
name: roaming
payload: {size: 1 MB}
links:
  home:
    kind: wifi
    down: 30 Mbit/s
    up: 10 Mbit/s
    rtt: 10 ms
    radio:
      standard: n
      handover: full-scan-dhcp
      access_points: [{name: a1}, {name: a2, signal: -50 dBm}]
  cafe: {kind: wifi, down: 30 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}
  lte: {down: 30 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
events:
  - {at: 20 s, link: home, handover: next}
"""


def test_who_was_asked_answers(linklab: Linklab, tmp_path: Path) -> None:
    """By TCP and UDP, on 0.0.0.0 and ::, on both hosts, over three links, before and after one gets
    another address."""
    file = tmp_path / "roaming.yaml"
    file.write_text(ROAMING)
    run_dir = succeeded(
        linklab,
        *("exec", file, "--server", f"{PROBE} serve", "--"),
        *shlex.split(f"{PROBE} ask 40 wlan0 wlan1 rmnet0"),
    ).run_dir
    said = lines(run_dir / "client.out")
    assert [one for one in said if one["answered"] != one["asked"]] == []
    assert [one for one in said if one["own"] and one["seen"] != one["own"]] == []
    assert len(said) == 2 * 2 * (4 * (1 + 2 * 3) + 2 * 3)
    half = len(said) // 2
    assert {one["own"] for one in said[:half]} == {"", "10.1.0.2", "10.2.0.2", "10.3.0.2"}
    assert {one["own"] for one in said[half:]} == {"", "10.1.0.3", "10.2.0.2", "10.3.0.2"}
