"""Tests the data sets' tables on rows of our own in their form."""

from pathlib import Path

import pytest

from linklab.importers import data_sets
from linklab.importers.cells import FRAMES_PER_PAYLOAD
from linklab.importers.format import Options
from linklab.importers.importing import ImportReport, import_file
from linklab.schema.document import ScenarioError
from linklab.traces import plain
from linklab.traces.trace import TraceError, TraceSample

UCC = """\
Timestamp,DL_bitrate,UL_bitrate,PINGAVG
2019.12.16_13.40.03,-,-,-
2019.12.16_13.40.04,72,20,-
2019.12.16_13.40.05,1,0,90.0
2019.12.16_13.40.05,3434.5,55,-
2019.12.16_13.40.06,-,-,-
2019.12.16_13.40.04,9,9,-
2019.12.16_13.40.07,5,7,50
2019.12.16_13.41.07,6,8,-
"""
# 5Gophers: All-Carriers/01-Throughput, 03-User-Mobility, mmWave-only/03 and 04.
CARRIERS = """\
protocol,carrier,num_tcp_conn,server_location,run_num,seq_num,throughput_mbps
TCP,SPRINT,1,US-East,1,0,10
TCP,SPRINT,1,US-East,1,1,20
TCP,SPRINT,1,US-East,1,4,30
TCP,VERIZON,8,US-East,2,0,1000.5
TCP,VERIZON,8,US-East,2,1,900.5
"""
DRIVE = """\
protocol,num_tcp_conn,seq_num,Sprint_throughput_mbps,TMobile_throughput_mbps,Verizon_throughput_mbps
TCP,8,0,25.5,145.5,53.5
TCP,8,1,65.5,87.5,0.0
TCP,8,2,108.5,88.5,142.5
"""
PANEL = """\
protocol,num_tcp_conn,location,radio_type,run_num,seq_num,throughput_mbps,rtt_in_ms
ICMP,,A,4G,93,1,,129.5
ICMP,,A,4G,93,2,,54.1
TCP,1.0,A,4G,1,20,356.5,62.58
TCP,1.0,A,4G,1,21,367.5,61.5
"""
PROBES_5G = """\
protocol,network_type,ue_location,target_server,probe_num,rtt_in_ms
ICMP,4G,A,First-Hop,1,64.5
ICMP,4G,A,First-Hop,2,30.7
"""
LUMOS = """\
run_num,seq_num,abstractSignalStr,latitude,longitude,movingSpeed,compassDirection,nrStatus,lte_rssi,lte_rsrp,lte_rsrq,lte_rssnr,nr_ssRsrp,nr_ssRsrq,nr_ssSinr,Throughput,mobility_mode,trajectory_direction,tower_id
1,1,2,44.97,-93.26,0.35,150,NOT_RESTRICTED,-61,-94,-14,2147483647,,,,77,driving,CW,2
1,2,2,44.97,-93.26,0.35,150,CONNECTED,-61,-94,-14,2147483647,-85,-11,13,1400,driving,CW,2
2,1,2,44.97,-93.26,0.35,150,CONNECTED,-61,-94,-14,2147483647,-85,-11,13,900,walking,ACW,2
2,2,2,44.97,-93.26,0.35,150,CONNECTED,-61,-94,-14,2147483647,-85,-11,13,800,walking,ACW,2
"""
# Starlink on the Autobahn: throughput and RTT_Loss; WetLinks: net_iperf and net_ping.
MOTORWAY = """\
,timestamp_start_dl,timestamp_end_dl,download,timestamp_start_ul,timestamp_end_ul,upload,Speed(km/h)
892,2024-04-19 16:23:00.001039872,2024-04-19 16:23:01.001035008,17.5,2024-04-19 16:23:00,2024-04-19 16:23:01,12.5,80
893,2024-04-19 16:23:01.001035008,2024-04-19 16:23:02.001035008,18.5,2024-04-19 16:23:01,2024-04-19 16:23:02,13.5,80
894,2024-04-19 16:24:07.001035008,2024-04-19 16:24:08.001035008,19.5,2024-04-19 16:24:07,2024-04-19 16:24:08,3.5,80
"""
MOTORWAY_PINGS = "timestamp,destination_IP,icmp_seq,ttl,time,lost\n" + "".join(
    f"2024-04-19 18:51:{10 + k // 60}.{k % 60 * 16_666_666:09},100.64.0.1,{k},64,"
    f"{-1.0 if k % 10 == 4 else 25.0 + k // 60},{k % 10 == 4}\n"
    for k in range(180)
)
WET_RATES = """\
site_name,timestamp_start,timestamp_end,server,ip_protocol,transport_protocol,download,upload
Osnabrueck,2023-09-01T00:00:00+00:00,2023-09-01T00:00:01+00:00,a,IPv4,TCP,200000000,20000000
Osnabrueck,2023-09-01T00:00:01+00:00,2023-09-01T00:00:02+00:00,a,IPv4,TCP,210000000,
Osnabrueck,2023-09-01T00:03:00+00:00,2023-09-01T00:03:01+00:00,a,IPv4,TCP,NaN,22000000
Osnabrueck,2023-09-01T00:03:01+00:00,2023-09-01T00:03:02+00:00,a,IPv4,TCP,230000000,23000000
"""
WET_PINGS = """\
site_name,timestamp_start,timestamp_end,target,ip_protocol,packet_loss,packets_send,ping_avg,ping_worst,ping_best,ping_stddev
Osnabrueck,2023-09-01T00:00:00Z,2023-09-01T00:00:10Z,1.1.1.1,IPv4,10.0,10,40.5,60,30,5
Osnabrueck,2023-09-01T00:00:10Z,2023-09-01T00:00:20Z,1.1.1.1,IPv4,0.0,10,50.5,60,30,5
Osnabrueck,2023-09-01T02:00:20+02:00,2023-09-01T02:00:30+02:00,1.1.1.1,IPv4,100.0,10,,,,
"""
LENS = "timestamp,rtt,uplink,downlink\n" + "".join(
    f"{1_705_744_800_616_897_349 + k * 10_000_000},"
    + ("0,0,-1" if k % 10 == 3 else "0,-1,0" if k % 10 == 4 else "30.5,10,20.5")
    + "\n"
    for k in range(300)
)
LENS_PING = "timestamp,rtt\n1705744800.533641,91.8\n1705744801.55492,96.5\n1705744802.6,111.0\n"


def imported(
    tmp_path: Path, content: str, name: str = "x.csv", **options: object
) -> tuple[ImportReport, tuple[TraceSample, ...]]:
    (tmp_path / name).write_text(content)
    out = tmp_path / "out.csv"
    report = import_file(tmp_path / name, out, Options(**options), overwrite=True)  # type: ignore[arg-type]
    return report, plain.load(out)


def mbit(*rates: float) -> list[int]:
    return [round(rate * 1e6 * FRAMES_PER_PAYLOAD) for rate in rates]


def down(trace: tuple[TraceSample, ...]) -> list[int | None]:
    return [one.down_bps for one in trace]


def seconds(trace: tuple[TraceSample, ...]) -> list[float]:
    return [round(one.length_ns / 1e9, 5) for one in trace]


def test_ucc(tmp_path: Path) -> None:
    """A line without a rate, two of one second, one that is late, and a minute without any."""
    report, trace = imported(tmp_path, UCC)
    assert (report.format, report.columns) == ("ucc", ("up", "rtt"))
    assert trace == (
        TraceSample(10**9, 72_000, 20_000, None),
        TraceSample(10**9, 3_434_500, 55_000, 0.09),
        TraceSample(10**9, 3_434_500, 55_000, 0.09),
        TraceSample(60 * 10**9, 5_000, 7_000, 0.05),
        TraceSample(10**9, 6_000, 8_000, 0.05),
    )
    assert report.notes == (
        "1 of 8 lines are not after a line above them (line 7 first): they are left out",
        "2 of 7 lines have no rate: that of the line before holds",
        "1 of 7 lines have the time of the line above: the last one of a time counts",
        "1 times the log was silent for more than 10 s (longest 60 s): the line before holds",
    )


def test_5gophers(tmp_path: Path) -> None:
    report, trace = imported(tmp_path, CARRIERS, only={"carrier": "sprint"})
    assert (report.format, report.columns) == ("5gophers", ())
    assert down(trace) == mbit(10, 20, 30)
    assert seconds(trace) == [1, 3, 1]
    _, trace = imported(tmp_path, CARRIERS, only={"run_num": "2"})
    assert down(trace) == mbit(1000.5, 900.5)
    _, trace = imported(tmp_path, DRIVE, only={"carrier": "Verizon"})
    assert down(trace) == mbit(53.5, 0, 142.5)
    _, trace = imported(tmp_path, PANEL, only={"protocol": "TCP"})
    assert down(trace) == mbit(356.5, 367.5)
    assert [one.rtt_s for one in trace] == [None, None]
    _, trace = imported(tmp_path, PANEL, only={"protocol": "TCP"}, keep=["rtt"])
    assert [one.rtt_s for one in trace] == [0.06258, 0.0615]
    for content, only in ((PANEL, {"protocol": "ICMP"}), (PROBES_5G, None)):
        report, trace = imported(tmp_path, content, only=only)
        assert report.down is None
        assert [one.rtt_s for one in trace] in ([0.1295, 0.0541], [0.0645, 0.0307])


def test_lumos5g(tmp_path: Path) -> None:
    report, trace = imported(tmp_path, LUMOS, only={"run_num": "2"})
    assert (report.format, down(trace)) == ("lumos5g", mbit(900, 800))
    both = {"mobility_mode": "driving", "run_num": "1"}
    assert down(imported(tmp_path, LUMOS, only=both)[1]) == mbit(77, 1400)


def test_starlink(tmp_path: Path) -> None:
    report, trace = imported(tmp_path, MOTORWAY)
    assert (report.format, report.columns) == ("starlink", ("up",))
    assert down(trace) == mbit(17.5, 18.5, 19.5)
    assert [one.up_bps for one in trace] == mbit(12.5, 13.5, 3.5)
    assert seconds(trace) == [1, 1, 1]
    assert report.notes == (
        "1 times the log was silent for more than 10 s (longest 66 s): this time is left out",
    )
    report, trace = imported(tmp_path, MOTORWAY_PINGS)
    assert [(one.rtt_s, one.loss_ratio) for one in trace] == [
        (0.025, 0.1),
        (0.026, 0.1),
        (0.027, 0.1),
    ]
    report, trace = imported(tmp_path, WET_RATES)
    assert down(trace) == mbit(200, 210, 210, 230)
    assert [one.up_bps for one in trace] == mbit(20, 20, 22, 23)
    assert report.notes == (
        "download: 'NaN' (line 4 first) is read as no value",
        "1 of 4 lines have no rate: that of the line before holds",
        "1 times the log was silent for more than 10 s (longest 179 s): this time is left out",
    )
    report, trace = imported(tmp_path, WET_PINGS)
    assert report.down is None
    assert [(one.rtt_s, one.loss_ratio) for one in trace] == [
        (0.0405, 0.1),
        (0.0505, 0.0),
        (0.0505, 1.0),
    ]
    assert seconds(trace) == [10, 10, 10]


def test_lens(tmp_path: Path) -> None:
    report, trace = imported(tmp_path, LENS)
    assert report.format == "starlink"
    assert {one.rtt_s for one in trace} == {0.0305}
    assert all(one.loss_ratio == pytest.approx(1 / 9, abs=0.01) for one in trace)
    assert seconds(trace) == pytest.approx([1, 1, 1], abs=0.01)
    report, trace = imported(tmp_path, LENS_PING)
    assert [one.rtt_s for one in trace] == pytest.approx([0.09415, 0.09415, 0.111])


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        ("", "x.csv", {"format": "ucc"}, "x.csv:1: the file is empty; needed: CSV with Timestamp,"),
        (
            "Timestamp,DL_bitrate\n",
            "x.csv",
            {"format": "ucc"},
            "x.csv:1: the column 'UL_bitrate' is",
        ),
        (UCC.replace("2019.12.16_13.40.07", "2020.12.16_13.40.07"), "x.csv", {}, "x.csv:8: Timest"),
        (
            UCC.replace("-,-,-", "-,-,A\rF", 1),
            "x.csv",
            {},
            "x.csv:2: is no line of CSV: new-line c",
        ),
        (CARRIERS, "x.csv", {}, "x.csv:5: carrier: 'VERIZON', and 'SPRINT' in line 2: several"),
        (CARRIERS, "x.csv", {"only": {"carrier": "ATT"}}, "x.csv:6: no line is of the chosen rec"),
        (CARRIERS, "x.csv", {"only": {"oper": "X"}}, "x.csv:1: has no column 'oper' to choose by"),
        (LUMOS.partition("\n")[0], "x.csv", {}, "x.csv:1: Throughput: no line has a rate;"),
        ("a,b\n1,2\n", "x.csv", {"format": "5gophers"}, "x.csv:1: the column 'seq_num' is missing"),
        (DRIVE, "x.csv", {}, "x.csv:1: each carrier has a column; needed: one of --only carrier"),
        (LUMOS, "x.csv", {}, "x.csv:4: run_num: '2', and '1' in line 2: several recordings are in"),
        (
            WET_RATES.replace("00:00:01+00:00,a", "00:09:01+00:00,a"),
            "x.csv",
            {},
            "x.csv:3: timestamp_start: begins long before the line above ends",
        ),
        (LUMOS.replace(",1400,", ",1.4e6,"), "x.csv", {}, "x.csv:3: Throughput: '1.4e6' is too mu"),
        ("t,down_mbit\n0,1\n1,1\n", "x.csv", {"only": {"t": "0"}}, "x.csv: csv has one recording "),
    ],
)
def test_what_is_not_clear_is_refused(
    tmp_path: Path, content: str, name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        imported(tmp_path, content, name, **options)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert "allowed" in str(caught.value) or "needed" in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


SET = """\
mine:
  looks: CSV of mine
  apart: [run]
  tables:
  - time: [when]
    values: {down: {column: rate, unit: kbit/s}}
"""


def test_a_set_is_some_lines_of_yaml() -> None:
    mine = data_sets.parse(SET, "x.yaml")["mine"]
    assert mine.tables[0].missing(["when", "rate"]) == 0
    assert mine.apart_in(["when", "rate", "run", "other"]) == ["run"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("looks", "look", "Object contains unknown field `look` - at `$[...]`"),
        ("unit: kbit/s", "unit: Gbit/s", "Invalid enum value 'Gbit/s' - at `$[...].tables[0]"),
        ("time: [when]", "end: till", "Object missing required field `time` - at `$[...].tables"),
        ("values: {", "values: 1 {", ":6: not valid YAML: "),
    ],
)
def test_a_wrong_set_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        data_sets.parse(SET.replace(old, new), "x.yaml")
    assert str(caught.value).startswith("x.yaml:")
    assert message in str(caught.value)
