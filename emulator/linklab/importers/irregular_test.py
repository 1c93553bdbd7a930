"""Tests irregular tables: each gives the same trace as the regular one, or is refused with its line."""

import csv
import gzip
import io
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linklab.importers.cells import FRAMES_PER_PAYLOAD
from linklab.importers.format import Options
from linklab.importers.opening import opened
from linklab.importers.registry import FORMATS
from linklab.traces import plain
from linklab.traces.trace import TraceError, TraceFile, TraceSample

START: Final = datetime(2026, 3, 29, 0, 59, 58, tzinfo=UTC)


KINDS: Final = {
    "csv": (["t", "down_mbit", "rtt_ms"], [], 1.0),
    "starlink": (
        ["", "timestamp_start_dl", "download", "ping_avg"],
        ["B, 7"],
        FRAMES_PER_PAYLOAD,
    ),
}
"""By format: names of columns, the cells before the time, rate and round-trip time, and the bytes of
frames per byte that the rate counts."""

ZONE: Final = timezone(timedelta(hours=5, minutes=30))
CLOCKS: Final[dict[str, Callable[[datetime], str]]] = {
    "s": lambda at: f"{at.timestamp():.3f}",
    "ms": lambda at: str(round(at.timestamp() * 1e3)),
    "µs": lambda at: str(round(at.timestamp()) * 10**6),
    "ns": lambda at: str(round(at.timestamp()) * 10**9),
    "iso z": lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "iso": lambda at: at.strftime("%Y-%m-%d %H:%M:%S.000000000"),
    "zone": lambda at: at.astimezone(ZONE).isoformat(),
    "slashes": lambda at: at.strftime("%Y/%m/%d %H:%M:%S"),
    "g-nettrack": lambda at: at.strftime("%Y.%m.%d_%H.%M.%S"),
}

dresses = st.fixed_dictionaries(
    {
        "separator": st.sampled_from([",", ";", "\t"]),
        "clock": st.sampled_from(sorted(CLOCKS)),
        "comma": st.booleans(),
        "bom": st.booleans(),
        "crlf": st.booleans(),
        "quoted": st.booleans(),
        "comments": st.booleans(),
        "missing": st.sampled_from(["", "-", "NaN", "nan", "null", " "]),
        "packed": st.booleans(),
    }
)
rates = st.lists(
    st.tuples(st.integers(0, 400_000).map(lambda k: k * 10), st.none() | st.integers(1, 9999)),
    min_size=2,
    max_size=12,
)


def table(format: str, values: list[tuple[int, int | None]], dress: dict[str, object]) -> bytes:
    """The same recording in any dress. Rates are in kbit/s, round-trip times in tenths of ms."""
    names, before, _ = KINDS[format]
    with_comma = dress["comma"] and dress["separator"] != ","

    def number(value: float) -> str:
        text = f"{value:.2f}"
        return text.replace(".", ",") if with_comma else text

    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=str(dress["separator"]),
        quoting=csv.QUOTE_ALL if dress["quoted"] else csv.QUOTE_MINIMAL,
        lineterminator="\r\n" if dress["crlf"] else "\n",
    )
    if dress["comments"]:
        text.write("# of our own\n")
    writer.writerow(names)
    for second, (kbit, rtt) in enumerate(values):
        clock = CLOCKS[str(dress["clock"])](START + timedelta(seconds=second))
        if with_comma and dress["clock"] == "s":
            clock = clock.replace(".", ",")
        missing = str(dress["missing"])
        delay = missing if rtt is None else number(rtt / 10)
        writer.writerow([*before, clock, number(kbit / 1000), delay])
    content = ("\ufeff" if dress["bom"] else "") + text.getvalue()
    raw = content.encode()
    return gzip.compress(raw) if dress["packed"] else raw


def recorded(format: str, file: Path, open_files: ExitStack) -> TraceFile:
    return FORMATS[format].read(opened(file, open_files), "x.csv", Options(), False)


def samples(format: str, file: Path) -> list[TraceSample]:
    with ExitStack() as open_files:
        return list(recorded(format, file, open_files).samples)


REGULAR: Final = {
    "separator": ",",
    "clock": "iso z",
    "missing": "",
    **dict.fromkeys(("comma", "bom", "crlf", "quoted", "comments", "packed"), False),
}


@pytest.mark.parametrize("format", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(values=rates, dress=dresses)
def test_any_dress_gives_the_same_trace(
    tmp_path: Path, format: str, values: list[tuple[int, int | None]], dress: dict[str, object]
) -> None:
    file, frames = tmp_path / "x.csv", KINDS[format][2]
    file.write_bytes(table(format, values, dict(REGULAR)))
    expected = samples(format, file)
    assert [sample.down_bps for sample in expected] == [
        round(kbit * 1000 * frames) for kbit, _ in values
    ]
    file.write_bytes(table(format, values, dress))
    assert samples(format, file) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"t,down_mbit\n0,1\n1,2\n")[:-9], "the gzip data is damaged or cut off"),
        (b"\x1f\x8b\x08broken", "the gzip data is damaged or cut off; allowed: a whole file"),
    ],
)
def test_files_that_cannot_be_unpacked_are_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        samples("csv", file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_what_was_assumed_is_noted(tmp_path: Path) -> None:
    file = io.BytesIO(b"t;down_mbit;rtt_ms\n1700000000123;12,5;n/a\n1700000001123;1,234;4\n")
    recording = plain.read(file, "x.csv")
    assert [sample.down_bps for sample in recording.samples] == [12_500_000, 1_234_000]
    assert recording.notes == [
        "t: '1700000000123' is read as ms since 1970",
        "decimal commas: '12,5' is read as 12.5",
        "rtt_ms: 'n/a' (line 2 first) is read as no value",
    ]
    played = tmp_path / "x.csv"
    played.write_bytes(file.getvalue())
    with pytest.raises(TraceError, match="allowed: what `linklab import` makes of it"):
        plain.load(played)
