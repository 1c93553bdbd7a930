import gzip
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linklab.importers import block_means
from linklab.importers.format import Options
from linklab.importers.importing import import_file
from linklab.importers.merging import binned
from linklab.traces import plain
from linklab.traces.trace import TraceError, TraceFile, TraceSample

NS_PER_MS = 10**6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_means, "_BLOCK_BYTES", 60)


samples = st.lists(
    st.builds(
        TraceSample,
        length_ns=st.integers(1, 3000).map(lambda ms: ms * NS_PER_MS),
        down_bps=st.integers(0, 10**10),
        up_bps=st.integers(0, 10**9),
        rtt_s=st.integers(0, 10_000).map(lambda ms: ms / 1000),
        loss_ratio=st.integers(0, 100).map(lambda percent: percent / 100),
    ),
    min_size=1,
    max_size=30,
)


def text_of(trace: list[TraceSample], keys: tuple[str, ...], start: int) -> str:
    text = io.StringIO()
    plain.write(text, trace, keys, ["licence: CC0"])
    lines = text.getvalue().splitlines(keepends=True)

    def later() -> Iterator[str]:
        for line in lines:
            t, comma, rest = line.partition(",")
            is_row = t.replace(".", "").isdigit()
            yield f"{start + float(t):.9f}{comma}{rest}" if is_row else line

    return "".join(later()) if start else "".join(lines)


def read(tmp_path: Path, text: str, bin_ms: int) -> TraceFile | None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    return block_means.read(file, bin_ms * NS_PER_MS)


def close(one: TraceSample, other: TraceSample) -> bool:
    pairs = zip(
        (one.length_ns, one.down_bps, one.up_bps, one.rtt_s, one.loss_ratio),
        (other.length_ns, other.down_bps, other.up_bps, other.rtt_s, other.loss_ratio),
        strict=True,
    )
    return all(
        (a is None) == (b is None)
        and (a or 0)
        == pytest.approx(b or 0, rel=1e-9, abs=1.01e-6 if isinstance(a, float) else 1.01)
        for a, b in pairs
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    samples,
    st.integers(1, 5000),
    st.sampled_from([(), ("up",), ("rtt", "loss"), ("up", "rtt", "loss")]),
    st.booleans(),
)
def test_means_are_those_of_the_samples_one_by_one(
    tmp_path: Path, trace: list[TraceSample], bin_ms: int, keys: tuple[str, ...], crlf: bool
) -> None:
    text = text_of(trace, keys, 0)
    found = read(tmp_path, text.replace("\n", "\r\n") if crlf else text, bin_ms)
    assert found is not None
    assert (found.columns, found.comments) == (frozenset(keys), ["licence: CC0"])
    expected = plain.read(io.BytesIO(text.encode()), "x.csv")
    means = list(binned(expected.samples, bin_ms * NS_PER_MS))
    made = list(found.samples)
    assert len(made) == len(means)
    assert all(map(close, made, means))


def test_without_an_end_the_last_line_lasts_as_the_one_before(tmp_path: Path) -> None:
    for text in ("t,down_mbit\n0,1\n1,2\n3,3\n", "t,down_mbit\n0,1\n1,2\n3,3"):
        found = read(tmp_path, text, 1000)
        assert found is not None
        assert [one.down_bps for one in found.samples] == [
            10**6,
            2 * 10**6,
            2 * 10**6,
            3 * 10**6,
            3 * 10**6,
        ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t,down_mbit\n",
        "t;down_mbit\n0;1\n1;1\n",
        "t,down_mbit\n0,1\n",
        "t,down_mbit\n0,1\n0,1\n",
        "t,down_mbit\n0,1\n0.0005,1\n",
        "t,down_mbit\n0,1\n2,1\n1,1\n",
        "t,down_mbit\n0,1\n1,\n",
        "t,down_mbit\n0,1\n1,-1\n",
        "t,down_mbit\n0,1\n1,nan\n",
        "t,down_mbit\n0,1\n1,1e3\n",
        "t,down_mbit\n0,1\n1,1.2.3\n",
        "t,down_mbit\n0,1\n1,.\n",
        "t,down_mbit\n0,1\n1,10001\n",
        "t,down_mbit\n0,1\n1,2,3\n4\n",
        "t,down_mbit\n0,1\n1,2,\n",
        't,down_mbit\n0,1\n1,"2"\n',
        "t,down_mbit\n1700000000,1\n1700000001,1\n",
        "t,down_mbit\n2026-01-01T00:00:00,1\n2026-01-01T00:00:01,1\n",
        "t,down_mbit\n0,1\n# comment\n1,1\n",
        "t,down_mbit\n0,1\n1,1\n# end: 2 s\n3,1\n",
        "t,down_mbit\n0,1\n1,1\n# end: 0.5 s\n",
        "t,down_mbit\n0,1\n1,\xb2\n",
    ],
)
def test_what_needs_judgement_is_left_to_the_reader_of_lines(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text, 1000) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text("0123456789.,-e# \n\r", max_size=60))
def test_any_file_is_read_alike_or_left(tmp_path: Path, body: str) -> None:
    text = "t,down_mbit\n0,1\n1,2\n" + body
    found = read(tmp_path, text, 500)
    if found is None:
        return
    expected = plain.read(io.BytesIO((tmp_path / "x.csv").read_bytes()), "x.csv")
    assert all(map(close, found.samples, binned(expected.samples, 500 * NS_PER_MS)))
    assert expected.notes == []


def test_a_line_without_end_is_left_before_it_fills_the_memory(tmp_path: Path) -> None:
    """300 MB of one line, packed to 300 kB, in a process that may take 60 MB more."""
    file = tmp_path / "x.csv"
    file.write_bytes(gzip.compress(b"t,down_mbit\n" + b"1" * 300_000_000, compresslevel=1))
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from linklab.importers import block_means\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert block_means.read(Path(sys.argv[1]), 10**9) is None\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60_000


def test_an_import_with_bins_reads_more_lines_than_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linklab.traces.lines.MAX_LINES", 100)
    text = "t,down_mbit\n" + "".join(f"{k / 1000},{k % 3}\n" for k in range(3000))
    source, made = tmp_path / "x.csv", tmp_path / "made.csv"
    source.write_text(text)
    report = import_file(source, made, Options(bin_s=0.5))
    assert (report.samples, report.notes) == (6, ())
    assert {one.down_bps for one in plain.load(made)} == {998_000, 10**6, 1_002_000}
    for options, irregular in ((Options(), text), (Options(bin_s=0.5), text.replace(",2", ", 2"))):
        source.write_text(irregular)
        with pytest.raises(TraceError, match="x.csv:101: has more than 100 lines; allowed: fewer"):
            import_file(source, tmp_path / "other.csv", options)
