import io
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklab.importers import mahimahi
from linklab.traces.lines import MAX_LINE_BYTES
from linklab.traces.trace import TraceError, TraceSample

NS_PER_MS = 1_000_000
FRAME = 1514


def read(
    content: bytes | str, bin_ms: int = 100, opportunity_bytes: int = FRAME
) -> list[TraceSample]:
    raw = content.encode() if isinstance(content, str) else content
    return list(mahimahi.read(io.BytesIO(raw), "x.up", bin_ms, opportunity_bytes).samples)


def lines(times_ms: list[int]) -> str:
    return "".join(f"{time}\n" for time in times_ms)


def opportunities(trace: list[TraceSample], opportunity_bytes: int = FRAME) -> Fraction:
    bits_ns = sum((sample.down_bps or 0) * sample.length_ns for sample in trace)
    return Fraction(bits_ns, 8 * opportunity_bytes * 10**9)


def test_a_timestamp_closes_its_millisecond() -> None:
    assert [sample.down_bps for sample in read(lines([100, 101, 200]))] == [121_120, 242_240]


def test_bins_without_opportunities_are_zero() -> None:
    assert [sample.down_bps for sample in read(lines([0, 350, 400]))] == [121_120, 0, 0, 242_240]


def test_ends_of_lines_and_a_byte_order_mark_do_not_matter() -> None:
    times = list(range(1, 300, 7))
    expected = read(lines(times))
    assert read(lines(times).removesuffix("\n")) == expected
    assert read(b"\xef\xbb\xbf" + lines(times).replace("\n", "\r\n").encode()) == expected


def test_reads_across_its_blocks() -> None:
    times = [index // 3 for index in range(3 * MAX_LINE_BYTES // 7)]
    assert len(lines(times)) > 2 * MAX_LINE_BYTES
    assert round(opportunities(read(lines(times)))) == len(times)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "x.up:1: the file is empty; needed: one whole number of milliseconds per line"),
        ("1\n2\n\n3\n", "x.up:3: is empty; allowed: one whole number"),
        ("1\n2x\n", "x.up:2: '2x' is not a whole number of milliseconds; allowed: one whole"),
        ("1\n+2\n", "x.up:2: '+2' is not a whole number"),
        ("1\n 2\n", "x.up:2: ' 2' is not a whole number"),
        ("1 2\n", "x.up:1: '1 2' is not a whole number"),
        ("1\r2\n", "x.up:1: '1\\r2' is not a whole number"),
        (b"1\n\xff\n", "x.up:2: '\ufffd' is not a whole number"),
        ("5\n4\n", "x.up:2: 4 is less than 5 before it; allowed: 5 or more"),
        ("1\n1000000001\n", "x.up:2: '1000000001' is too much; allowed: one whole number"),
        ("1\n" + "9" * 5000 + "\n", "x.up:2: '9999999999999999999999999999999999999999…' is too"),
        ("0\n0\n", "x.up: the last timestamp is 0, so that the trace lasts for no time; allowed"),
        (b"1\n" + b"2" * (3 * MAX_LINE_BYTES), "x.up:2: the line is too long; allowed: one"),
        ("1\n" * 1_000_000, "x.up: 1000000 opportunities in 1 ms are 12112000 Mbit/s; allowed"),
    ],
)
def test_errors_say_line_reason_and_what_is_allowed(content: bytes | str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(content)
    assert str(caught.value).startswith(message)


def test_a_wrong_line_in_a_later_block_has_its_number() -> None:
    times = list(range(400_000))
    with pytest.raises(TraceError, match=r"x\.up:400001: 'x' is not"):
        read(lines(times) + "x\n")
    with pytest.raises(TraceError, match=r"x\.up:400001: 3 is less than 399999"):
        read(lines(times) + "3\n")


times = st.lists(st.integers(0, 2000), min_size=1, max_size=300).map(sorted)


@given(times.filter(lambda values: values[-1] > 0), st.integers(1, 300), st.integers(1, 9000))
@example([1], 1, 1)
@example([0, 0, 7], 10, FRAME)
def test_no_opportunity_is_lost_or_added(
    values: list[int], bin_ms: int, opportunity_bytes: int
) -> None:
    trace = read(lines(values), bin_ms, opportunity_bytes)
    rounding = Fraction(sum(sample.length_ns for sample in trace), 2 * 10**9)
    carried = opportunities(trace, opportunity_bytes) * opportunity_bytes * 8
    assert abs(carried - len(values) * opportunity_bytes * 8) <= rounding
    assert sum(sample.length_ns for sample in trace) == values[-1] * NS_PER_MS


@given(times.filter(lambda values: values[-1] > 0))
def test_bins_of_100_ms_hold_exactly_their_bytes(values: list[int]) -> None:
    values = [*values, (values[-1] + 99) // 100 * 100]
    assert opportunities(read(lines(values))) == len(values)


@given(times.filter(lambda values: values[-1] > 0), st.integers(1, 300))
def test_bins_are_equally_long_but_the_last(values: list[int], bin_ms: int) -> None:
    lengths = [sample.length_ns // NS_PER_MS for sample in read(lines(values), bin_ms)]
    assert set(lengths[:-1]) <= {bin_ms}
    assert lengths[-1] < 1.5 * bin_ms
    if len(lengths) > 1:
        assert lengths[-1] >= bin_ms / 2


@given(st.binary(max_size=40))
def test_any_file_is_read_or_refused(content: bytes) -> None:
    try:
        trace = read(content, bin_ms=3_600_000)
    except TraceError:
        return
    whole = content.removeprefix(b"\xef\xbb\xbf").rpartition(b"\n")[0]
    last = content.removeprefix(b"\xef\xbb\xbf").split()[-1:]
    values = [int(word) for word in whole.split()]
    if last and last[0].isdigit() and not content.endswith(b"\n"):
        values += [int(last[0])] if not values or int(last[0]) >= values[-1] else []
    assert all(one <= other for one, other in pairwise(values))
    assert sum(sample.length_ns for sample in trace) == values[-1] * NS_PER_MS


def test_a_last_line_that_is_cut_off_is_left_out() -> None:
    recording = mahimahi.read(io.BytesIO(b"1\n100\n200\n30"), "x.up")
    assert list(recording.samples) == read("1\n100\n200\n")
    assert recording.notes == ["the last line is cut off: it is left out"]
