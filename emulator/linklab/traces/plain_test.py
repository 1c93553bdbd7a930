import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.traces import plain
from linklab.traces.trace import MAX_LENGTH_NS, MIN_SAMPLE_NS, OPTIONAL, TraceError, TraceSample

rates = st.integers(0, MAX_RATE_BPS)
samples = st.lists(
    st.builds(
        TraceSample,
        length_ns=st.integers(MIN_SAMPLE_NS, MAX_LENGTH_NS // 100),
        down_bps=rates,
        up_bps=st.none() | rates,
        rtt_s=st.none() | st.floats(0, MAX_RTT_S),
        loss_ratio=st.none() | st.floats(0, 1),
    ),
    min_size=1,
    max_size=20,
)


def read(content: bytes | str) -> list[TraceSample]:
    raw = content.encode() if isinstance(content, str) else content
    return list(plain.read(io.BytesIO(raw), "x.csv").samples)


def written(trace: list[TraceSample], comments: tuple[str, ...] = ()) -> str:
    text = io.StringIO()
    plain.write(text, trace, OPTIONAL, comments)
    return text.getvalue()


def test_a_sample_holds_until_the_next_and_the_last_until_the_end() -> None:
    trace = read(
        "# licence: Apache-2.0\n"
        "t,down_mbit,up_mbit,rtt_ms,loss\n"
        "0,42.3,9.1,48,0.01\n"
        "0.1,0,,,\n"
        "# end: 0.35 s\n"
    )
    assert trace == [
        TraceSample(100_000_000, 42_300_000, 9_100_000, 0.048, 0.01),
        TraceSample(250_000_000, 0, None, None, None),
    ]


def test_without_an_end_the_last_sample_lasts_as_long_as_the_one_before() -> None:
    assert [sample.length_ns for sample in read("t,down_mbit\n0,1\n1,2\n3,3\n")] == [
        1_000_000_000,
        2_000_000_000,
        2_000_000_000,
    ]


def test_only_differences_of_t_count_and_keep_their_precision() -> None:
    trace = read("t,down_mbit\n1700000000.1,1\n1700000000.2,2\n# end: 1700000000.300000001 s\n")
    assert [sample.length_ns for sample in trace] == [100_000_000, 100_000_001]


def test_columns_come_in_any_order_and_comments_anywhere() -> None:
    assert read("# a\n\nUP_mbit, t ,down_mbit\n# b\n1,0,2\n\n3,1,4\n") == [
        TraceSample(10**9, 2_000_000, 1_000_000),
        TraceSample(10**9, 4_000_000, 3_000_000),
    ]


def test_comments_are_those_above_the_columns() -> None:
    file = io.BytesIO(b"# licence: CC0\n#source:x\nt,down_mbit,rtt_ms\n# later\n0,1,2\n1,1,2\n")
    recording = plain.read(file, "x.csv")
    assert recording.comments == ["licence: CC0", "source:x"]
    assert recording.columns == {"rtt"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "x.csv:1: the file is empty; needed: a line that names the columns"),
        ("0,1\n1,2\n", "x.csv:1: '0,1' does not name the columns; allowed: t and one"),
        ("t,\n0\n", "x.csv:1: the column '' is unknown; allowed: t and one or more of down_mbit"),
        ("t\n0\n", "x.csv:1: no column has values; needed: t and one or more of down_mbit"),
        ("down_mbit\n1\n", "x.csv:1: the column 't' is missing"),
        ("t,down_mbit,down\n", "x.csv:1: the column 'down' is unknown"),
        ("t,t,down_mbit\n", "x.csv:1: the column 't' is named twice"),
        ("t,down_mbit\n", "x.csv:1: the file has no samples"),
        ("t,down_mbit\n0,1\n", "x.csv:2: one sample alone lasts for no time"),
        ("t,down_mbit\n0,1\n0,2\n", "x.csv:3: one sample alone lasts for no time; allowed: two"),
        ("t,down_mbit\n0,1\n2,1\n1,2\n4,1\n3,1\n", "x.csv:6: t: 2 of 5 lines are not after a"),
        (
            "t,down_mbit\n0,1\n50,1\n" + "".join(f"{t},2\n" for t in range(1, 50)),
            "x.csv:14: t: '11' and 10 lines before it are not after the line above them; allowed: l",
        ),
        ('t,down_mbit\n0,"1,500"\n', "x.csv:2: down_mbit: '1,500' may be 1.500 or 1500; allowed:"),
        ('t,down_mbit\n0,"1,5,0"\n', "x.csv:2: down_mbit: '1,5,0' is not a number; allowed: 0"),
        ("t;down_mbit\n0;1,5\n1;1.5\n", "x.csv:3: down_mbit: '1.5' has '.', and a number above"),
        ("t;down_mbit\n0;1.000,5\n", "x.csv:2: down_mbit: '1.000,5' is not a number; allowed: 0"),
        ('t,down_mbit\n0,"1\n', "x.csv:2: is no line of CSV: unexpected end of data; allowed: fi"),
        ("t,down_mbit\n0,1\nt,down_mbit\n", "x.csv:3: the columns are named again; allowed: one"),
        ("t,down_mbit\n2024-04-19 16:23,1\n", "x.csv:2: t: '2024-04-19 16:23' is no time; allow"),
        ("t,down_mbit\n19/04/2024 16:23:00,1\n", "x.csv:2: t: '19/04/2024 16:23:00' is no time"),
        ("t,down_mbit\n2023-02-29T00:00:00Z,1\n", "x.csv:2: t: '2023-02-29T00:00:00Z' is no time"),
        ("t,down_mbit\n2024-04-19T16:23:00Z,1\n2024-04-19T16:23:01,1\n", "x.csv:3: t: '2024-04-19"),
        ("t,down_mbit\n0,1\n0.0001,2\n", "x.csv:3: t: 0.0001 s is not after the 0 s before it"),
        ("t,down_mbit\n0,1\n1e7,2\n", "x.csv:3: t: 10000000 s is too long after the first sample"),
        ("t,down_mbit\n-1,1\n", "x.csv:2: t: '-1' is negative; allowed: 0 to"),
        ("t,down_mbit\n0,-3\n", "x.csv:2: down_mbit: '-3' is negative; allowed: 0 to 10000 Mbit/s"),
        ("t,down_mbit\n0,nan\n", "x.csv:2: down_mbit: 'nan' is not finite; allowed: 0 to 10000"),
        ("t,down_mbit\n0," + "9" * 500 + "\n", "x.csv:2: down_mbit: '" + "9" * 40 + "…' is too mu"),
        ("t,down_mbit\n0,٣\n", "x.csv:2: down_mbit: '٣' is not a number"),
        ("t,down_mbit\n0,\n", "x.csv:2: down_mbit: is missing; allowed: 0 to 10000 Mbit/s"),
        ("t,down_mbit,loss\n0,1,1.5\n", "x.csv:2: loss: '1.5' is too much; allowed: 0 to 1"),
        ("t,down_mbit,rtt_ms\n0,1,20000\n", "x.csv:2: rtt_ms: '20000' is too much; allowed: 0 to"),
        ("t,down_mbit\n0,1,2\n", "x.csv:2: the line has 3 fields; allowed: 2 as in line 1"),
        ("t,down_mbit\n0\n", "x.csv:2: the line has 1 field; allowed: 2 as in line 1"),
        (b"t,down_mbit\n0,\xff\n", "x.csv:2: byte 3 (0xff) is not UTF-8; allowed: UTF-8 text"),
        ("t,down_mbit\n0,1\n# end: 0 s\n", "x.csv:3: end: 0 s is not after the 0 s before it"),
        ("t,down_mbit\n0,1\n# end: 10\n", "x.csv:3: end: '10' is no time in s; allowed: a time"),
        ("t,down_mbit\n0,1\n# end: 1 s\n1,2\n", "x.csv:4: a sample comes after the end"),
        ("t,down_mbit\n0," + "1" * 140_000, "x.csv:2: down_mbit: '1111111111111111111111111111111"),
        ("t," + "x" * (1 << 20), "x.csv:1: is too long for a line of text"),
    ],
)
def test_errors_say_line_column_reason_and_what_is_allowed(
    content: bytes | str, message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        read(content)
    assert str(caught.value).startswith(message)
    assert "allowed: " in str(caught.value) or "needed: " in str(caught.value)


def test_lines_behind_others_and_a_cut_one_are_left_out_of_an_import_only(tmp_path: Path) -> None:
    whole = "t,down_mbit\n" + "".join(f"{t},{t % 7}\n" for t in range(30))
    late = whole.replace("\n9,2\n", "\n9,2\n8,5\n")
    for text, note in (
        (late, "1 of 31 lines are not after a line above them (line 12 first): they are left out"),
        (whole + "30", "the last line is cut off: it is left out"),
        (whole + "30,", "the last line is cut off: it is left out"),
        (whole + "30,\udcc3", "the last line is cut off: it is left out"),
        (whole + "# end: 3", "the last line is cut off: it is left out"),
    ):
        content = text.encode(errors="surrogateescape")
        recording = plain.read(io.BytesIO(content), "x.csv")
        assert list(recording.samples) == read(whole)
        assert recording.notes == [note]
        file = tmp_path / "x.csv"
        file.write_bytes(content)
        with pytest.raises(TraceError, match="; allowed: what `linklab import` makes of it"):
            plain.load(file)


def test_samples_before_a_wrong_line_are_there_already() -> None:
    stream = plain.read(io.BytesIO(b"t,down_mbit\n0,1\n1,2\n2,x\n"), "x.csv").samples
    assert next(stream) == TraceSample(10**9, 1_000_000)
    with pytest.raises(TraceError, match=r"x\.csv:4: down_mbit"):
        next(stream)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none.csv: cannot be read: No such file"):
        plain.load(tmp_path / "none.csv")


def test_comments_of_several_lines_stay_comments(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(written([TraceSample(10**9, 1)], ("one\ntwo", "")))
    assert file.read_text().startswith("# one\n# two\n#\nt,down_mbit")
    assert plain.load(file) == (TraceSample(10**9, 1),)


@given(samples)
def test_what_is_written_reads_back_as_the_same(trace: list[TraceSample]) -> None:
    assert read(written(trace)) == trace


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_file_is_read_or_refused(body: bytes) -> None:
    for content in (body, b"t,down_mbit,up_mbit\n0,1,1\n" + body):
        try:
            trace = read(content)
        except TraceError:
            continue
        assert all(sample.length_ns >= MIN_SAMPLE_NS for sample in trace)
        assert all(0 <= (sample.down_bps or 0) <= MAX_RATE_BPS for sample in trace)
