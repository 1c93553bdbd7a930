"""Tests scenarios made of a download's record. A download of the lab stands for one of the field. A
scenario is made only of what its client recorded, and run again."""

import json
import shlex
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import dpkt
import pytest
from conftest import Linklab, ScenarioFile, ran, succeeded
from linklab.core.paths import MULTILINK
from linklab.scenario import load


@pytest.mark.parametrize("who", ["alg3", "single-wifi"])
def test_a_scenario_made_of_a_record_is_as_fast_as_the_links_were(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path, who: str
) -> None:
    changing = """
events:
  - {at: 1 s, link: wifi, down: 8 Mbit/s}
  - {at: 2 s, link: wifi, down: 30 Mbit/s}
  - {at: 2.5 s, link: lte, for: 1 s, outage: true}
"""
    true = scenario(
        "truth", size="20 MB", wifi="down: 40 Mbit/s, up: 20 Mbit/s, rtt: 20 ms", more=changing
    )
    done = succeeded(linklab, "run", true, "-a", who, "--out", tmp_path / "runs")
    found = json.loads(done.out)
    record = tmp_path / "record"
    record.mkdir()
    for name in ("client.jsonl", "client.json"):
        shutil.copy(Path(found["run_dir"], name), record)

    made = tmp_path / "made.yaml"
    done = linklab("import", record, "--scenario", made)
    assert done.code == 0, done.err
    assert f"the same again: linklab run {made} -a {who}" in done.out
    links = load(made).links
    assert list(links) == (["wifi", "lte"] if who == "alg3" else ["wifi"])
    assert links["wifi"].rtt_s == pytest.approx(0.02, rel=0.01)

    done = succeeded(linklab, "compare", record, "--out", tmp_path / "runs")
    (beside,) = json.loads(done.out)["predictions"]
    assert beside["measured_s"] == pytest.approx(found["figures"]["download_s"], abs=1e-6)
    assert beside["error_ratio"] == pytest.approx(0, abs=0.03)
    for link in beside["links"]:
        assert link["off_ratio"] < 0.05, link["link"]


def test_a_probe_tells_what_each_link_can_do(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    words = (
        f"{shlex.quote(str(MULTILINK))} probe --link wifi=wlan0 --link lte=rmnet0 "
        "--server {url} --ca-file {ca} --time 3s "
        "--run-dir {output}.d >&2 && tar --directory {output}.d --create ."
    )
    true = scenario("truth", size="60 MB")
    done = succeeded(linklab, "exec", true, "--out", tmp_path / "runs", "--", "sh", "-c", words)
    drive = tmp_path / "drive"
    drive.mkdir()
    archive = Path(json.loads(done.out)["run_dir"], "client.out")
    subprocess.run(["tar", "-xf", archive, "-C", drive], check=True)
    made = tmp_path / "drive.yaml"
    parts = [drive / name for name in ("wifi", "lte", "all")]
    done = linklab("import", *parts, "--scenario", made)
    assert done.code == 0, done.err
    links = load(made).links
    for link, rate_bps, rtt_s in (("wifi", 80e6, 0.01), ("lte", 50e6, 0.03)):
        assert links[link].down_rate_bps == pytest.approx(rate_bps, rel=0.01)
        assert links[link].rtt_s == pytest.approx(rtt_s, rel=0.01)


def test_packets_are_recorded_with_the_lab_s_times(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    # This algorithm decides once. One that decides by rates may amplify a microsecond.
    true = scenario("truth", size="20 MB")
    runs = []
    for words in ((), ("--pcap", "all", "--tls-keys"), ("--pcap", "all", "--tls-keys")):
        done = succeeded(linklab, "run", true, "-a", "naive", *words, "--out", tmp_path / "runs")
        runs.append(json.loads(done.out))
    plain, recorded, again = (one["figures"]["download_s"] for one in runs)
    assert recorded == again
    assert recorded == pytest.approx(plain, rel=1e-3)
    first, second = (Path(one["run_dir"]) for one in runs[1:])
    captures = [first / "wifi.pcap", first / "lte.pcap"]
    for capture in captures:
        assert capture.read_bytes() == (second / capture.name).read_bytes()
        assert _bad_checksums(capture) == 0
    assert b"SERVER_TRAFFIC_SECRET_0 " in (first / "tls-keys.log").read_bytes()
    assert not (Path(runs[0]["run_dir"]) / "tls-keys.log").exists()

    made = tmp_path / "made.yaml"
    done = linklab("import", *captures, "--scenario", made)
    assert done.code == 0, done.err
    for link, rate_bps, rtt_s in (("wifi", 80e6, 0.01), ("lte", 50e6, 0.03)):
        assert load(made).links[link].down_rate_bps == pytest.approx(rate_bps, rel=0.04)
        assert load(made).links[link].rtt_s == pytest.approx(rtt_s, rel=0.02)
    done = linklab("run", made, "-a", "naive", "--out", tmp_path / "runs", "--json")
    assert json.loads(done.out)["figures"]["download_s"] == pytest.approx(plain, rel=0.03)


def _bad_checksums(capture: Path) -> int:
    """Counts the TCP packets with a wrong checksum (RFC 9293 3.1)."""
    bad = 0
    with capture.open("rb") as opened:
        for _, content in dpkt.pcap.Reader(opened):
            packet = dpkt.ethernet.Ethernet(content).data
            if isinstance(packet, dpkt.ip.IP) and isinstance(packet.data, dpkt.tcp.TCP):
                segment = bytes(packet.data)
                pseudo = packet.src + packet.dst + struct.pack(">HH", packet.p, len(segment))
                bad += dpkt.in_cksum(pseudo + segment) != 0
    return bad


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark here")
def test_wireshark_reads_what_was_recorded(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    done = succeeded(
        linklab,
        *("run", scenario("truth", size="3 MB"), "-a", "adaptive"),
        *("--pcap", "all", "--tls-keys", "--out", tmp_path / "runs"),
    )
    run_dir = Path(json.loads(done.out)["run_dir"])
    for link, rtt_s in (("wifi", 0.01), ("lte", 0.03)):

        def seen(wanted: str, *fields: str, link: str = link) -> list[list[str]]:
            return _tshark(run_dir / f"{link}.pcap", run_dir / "tls-keys.log", wanted, fields)

        everything = seen("tcp", "frame.time_epoch")
        assert len(everything) > 100
        assert len(seen("tcp.checksum.status == Good", "frame.number")) == len(everything)
        (asked,), (answered,) = (
            seen(f"tcp.flags.syn == 1 && tcp.flags.ack == {ack}", "frame.time_epoch")
            for ack in (0, 1)
        )
        waited_ns = _ns(answered[0]) - _ns(asked[0])
        assert waited_ns == pytest.approx(rtt_s * 1e9, abs=100_000)
        paths = {path for (path,) in seen("http2.headers.path", "http2.headers.path")}
        assert paths == {"/payload-3000000-1.bin"}
        body = seen("http2.type == 0", "http2.length")
        assert sum(int(one) for (lengths,) in body for one in lengths.split(",")) > 500_000


def _tshark(capture: Path, keys: Path, wanted: str, fields: Sequence[str]) -> list[list[str]]:
    told = ("-o", "tcp.check_checksum:TRUE", "-o", f"tls.keylog_file:{keys}", "-T", "fields")
    which = [word for name in fields for word in ("-e", name)]
    done = ran(["tshark", "-r", capture, "-Y", wanted, *told, *which], check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def _ns(text: str) -> int:
    """Parses seconds as tshark writes them, `1767225621.000035840`, with more digits than a float
    has."""
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
