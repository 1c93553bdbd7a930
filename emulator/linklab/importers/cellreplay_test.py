import io

import pytest

from linklab.importers import cellreplay
from linklab.traces.trace import TraceError


def read(content: bytes) -> list[tuple[int, float]]:
    return list(cellreplay.read_light(io.BytesIO(content), "x-light", []))


def test_the_rtt_is_twice_the_delay() -> None:
    assert read(b"0 24 0 1 1 3\r\n120 30 0\r\n120 31\n") == [
        (0, 0.048),
        (120_000_000, 0.06),
        (120_000_000, 0.062),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x-light:1: the file is empty; needed: whole numbers: time_ms one_way_ms pdo0"),
        (b"0 1 0\n7\n", "x-light:2: '7' has too few numbers; allowed: whole numbers: time_ms"),
        (b"0 1 0\n\n", "x-light:2: '' has too few numbers"),
        (b"0 1 0\n5 x 0\n", "x-light:2: 'x' is not a whole number; allowed: whole numbers"),
        (b"0 1 -1\n", "x-light:1: '-1' is not a whole number"),
        (b"9 1 0\n8 1 0\n", "x-light:2: time_ms: 8 is less than 9 before it; allowed: 9 or more"),
        (b"0 5001 0\n", "x-light:1: one_way_ms: '5001' is too much; allowed: 0 to 5000 ms"),
        (b"1000000001 1\n", "x-light:1: time_ms: '1000000001' is too much; allowed: 0 to"),
    ],
)
def test_errors_say_line_reason_and_what_is_allowed(content: bytes, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(content)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("last", ["4", "450 3", "450", "45"])
def test_a_last_line_that_is_cut_off_is_left_out(last: str) -> None:
    notes: list[str] = []
    file = io.BytesIO(f"0 24 0 1\n{last}".encode())
    assert list(cellreplay.read_light(file, "x-light", notes)) == [(0, 0.048)]
    assert notes == ["the last line is cut off: it is left out"]
