import io

import pytest

from linklab.importers.format import Options
from linklab.importers.registry import FORMATS
from linklab.traces.trace import TraceError, TraceFile, TraceSample

# The columns of UCC's 5G set, and rows of the same form.
HEADER = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,"
    "DL_bitrate,UL_bitrate,State,PINGAVG,PINGMIN,PINGMAX,PINGSTDEV,PINGLOSS,CELLHEX,NODEHEX,"
    "LACHEX,RAWCELLID,NRxRSRP,NRxRSRQ\n"
)
# Those of the 4G set, which pings nobody.
HEADER_4G = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,"
    "DL_bitrate,UL_bitrate,State,NRxRSRP,NRxRSRQ,ServingCell_Lon,ServingCell_Lat,"
    "ServingCell_Distance\n"
)


def row(clock: str, down: str, up: str = "0", ping: str = "-") -> str:
    return (
        f"2019.12.16_{clock},-8.39,51.88,0,B,11,5G,-103,-15,1.0,15,-90,{down},{up},D,"
        f"{ping},-,-,-,-,B,A4DF,9CBA,10805003,-106.0,-11.0\n"
    )


def recording(content: bytes | str) -> TraceFile:
    raw = content.encode() if isinstance(content, str) else content
    return FORMATS["ucc"].read(io.BytesIO(raw), "x.csv", Options(), False)


def read(content: bytes | str) -> list[TraceSample]:
    return list(recording(content).samples)


def test_rates_are_in_kbit_and_hold_for_a_second() -> None:
    text = HEADER + row("13.40.04", "72", "20") + row("13.40.05", "3434.5", "55")
    assert read(text) == [TraceSample(10**9, 72_000, 20_000), TraceSample(10**9, 3_434_500, 55_000)]


def test_the_last_line_of_a_second_counts() -> None:
    text = HEADER + row("13.40.04", "1") + row("13.40.04", "2") + row("13.40.05", "3")
    assert [sample.down_bps for sample in read(text)] == [2000, 3000]


def test_a_ping_holds_until_the_next_also_within_a_second() -> None:
    text = (
        HEADER
        + row("13.40.04", "1")
        + row("13.40.05", "1", ping="90.0")
        + row("13.40.05", "1")
        + row("13.40.06", "1")
        + row("13.40.07", "1", ping="50")
    )
    assert [sample.rtt_s for sample in read(text)] == [None, 0.09, 0.09, 0.05]


def test_missing_seconds_belong_to_the_line_before_also_over_midnight() -> None:
    text = HEADER + row("23.59.58", "1") + row("00.00.01", "2").replace("12.16", "12.17")
    assert [sample.length_ns for sample in read(text)] == [3 * 10**9, 10**9]


def test_a_missing_rate_is_that_of_the_line_before() -> None:
    text = HEADER + row("13.40.03", "-", "-") + row("13.40.04", "5", "7") + row("13.40.05", "-")
    opened = recording(text)
    assert list(opened.samples) == [TraceSample(10**9, 5000, 7000), TraceSample(10**9, 5000, 0)]
    assert "2 of 3 lines have no rate: that of the line before holds" in opened.notes


def test_the_4g_set_tells_no_rtt() -> None:
    line = "2017.11.22_10.07.03,-8.5,51.8,4,A,2,LTE,-119,-14,2.0,6,-94,5178,194,D,-,-,-,-,-\n"
    opened = recording(HEADER_4G + line)
    assert opened.columns == {"up"}
    assert list(opened.samples) == [TraceSample(10**9, 5_178_000, 194_000)]


def test_silence_is_noted() -> None:
    opened = recording(HEADER + row("13.40.04", "0") + row("13.41.04", "1"))
    assert len(list(opened.samples)) == 2
    assert opened.notes == [
        "1 times the log was silent for more than 10 s (longest 60 s): the line before holds",
    ]


def test_a_clock_that_runs_back_is_read() -> None:
    """As in UCC's 5G set."""
    clocks = {"13.40.20": "2", "13.40.21": "4", "13.40.22": "6"}
    rows = [row(clock, down) for clock, down in clocks.items()]
    opened = recording(HEADER + rows[0] + rows[1] + row("13.40.20", "9") + rows[2])
    assert [(sample.length_ns, sample.down_bps) for sample in opened.samples] == [
        (10**9, 2000),
        (10**9, 4000),
        (10**9, 6000),
    ]
    assert opened.notes == [
        "1 of 4 lines are not after a line above them (line 4 first): they are left out"
    ]


def test_a_last_line_that_is_cut_off_is_left_out() -> None:
    whole = HEADER + row("13.40.04", "72") + row("13.40.05", "80")
    last = row("13.40.06", "90").rstrip()
    for length in range(1, last.rindex(",") + 1):
        opened = recording(whole + last[:length])
        assert list(opened.samples) == read(whole)
        assert opened.notes == ["the last line is cut off: it is left out"]
    assert len(read(whole + last)) == 3
    opened = recording((whole + last[:40]).encode() + b"\xc3")
    assert list(opened.samples) == read(whole)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "x.csv:1: the file is empty; needed: CSV with Timestamp, DL_bitrate, UL_bitrate"),
        ("Timestamp,DL_bitrate\n", "x.csv:1: the column 'UL_bitrate' is missing; needed: Time"),
        (HEADER, "x.csv:1: DL_bitrate: no line has a rate; needed: at least one"),
        (HEADER + row("13.40.04", "nan"), "x.csv:2: DL_bitrate: no line has a rate"),
        (HEADER + row("13.40.04", "1e9"), "x.csv:2: DL_bitrate: '1e9' is too much; allowed: 0 to"),
        (HEADER + row("13.40.04", "1", ping="x"), "x.csv:2: PINGAVG: 'x' is not a number"),
        (HEADER + row("13:40.04", "1"), "x.csv:2: Timestamp: '2019.12.16_13:40.04' is no time"),
        (HEADER + row("25.00.00", "1"), "x.csv:2: Timestamp: '2019.12.16_25.00.00' is no time"),
        (
            HEADER + "".join(row(f"13.40.{s}", "1") for s in (14, 13, 16, 15, 18, 17)),
            "x.csv:7: Timestamp: 3 of 6 lines are not after a line above them; allowed: up to 10 %",
        ),
        (
            HEADER + row("13.40.04", "1") + row("13.40.04", "1").replace("2019", "2020"),
            "x.csv:3: Timestamp: the log was silent for 31622400 s before; allowed: up to 1000000",
        ),
        (
            HEADER + row("13.40.04", "1").replace("A4DF", f'"{140_000 * "A"}"'),
            "x.csv:2: is no line of CSV: field larger than field limit (131072); allowed: fields",
        ),
        (HEADER.rstrip() + f',"{140_000 * "N"}"', "x.csv:1: is no line of CSV: field larger than"),
        (HEADER + row("13.40.04", "1").replace("A4DF", "A\rF"), "x.csv:2: is no line of CSV:"),
    ],
)
def test_errors_say_line_column_reason_and_what_is_allowed(
    content: bytes | str, message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        read(content)
    assert str(caught.value).startswith(message)
    assert "allowed" in str(caught.value) or "needed" in str(caught.value)
