import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from linklab.importers.format import Options
from linklab.importers.importing import import_file
from linklab.traces import plain
from linklab.traces.trace import TraceError, TraceSample

RECORDINGS = Path(__file__).with_name("recordings")
CSV = "# licence: CC0\nt,down_mbit,up_mbit,rtt_ms,loss\n0,8,4,50,0.01\n1,0,2,60,0\n2,16,2,70,0\n"


def mahimahi(path: Path, times_ms: list[int]) -> Path:
    path.write_text("".join(f"{time}\n" for time in times_ms))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return mahimahi(tmp_path / "down.trace", list(range(1, 1001)))


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "x.csv"


def test_what_is_imported_plays_and_says_where_it_is_from(source: Path, destination: Path) -> None:
    report = import_file(source, destination, Options(licence="CC-BY-4.0"))
    assert report.down is not None
    assert plain.load(destination) == (TraceSample(100_000_000, 12_112_000),) * 10
    head = destination.read_text().splitlines()
    assert head[0] == "# licence: CC-BY-4.0"
    assert head[1] == "# bins of 100 ms, 1514 bytes per opportunity"
    assert head[2].startswith("# imported from: mahimahi down.trace, by linklab ")
    assert (report.format, report.samples, report.columns) == ("mahimahi", 10, ())
    assert (report.down.mean_bps, report.down.duration_s) == (12_112_000, 1.0)
    assert report.up is None


def test_the_uplink_may_be_a_file_of_its_own(source: Path, destination: Path) -> None:
    uplink = mahimahi(source.with_name("up.trace"), list(range(10, 501, 10)))
    report = import_file(source, destination, Options(uplink=uplink))
    assert {sample.up_bps for sample in plain.load(destination)} == {1_211_200}
    assert report.up is not None
    assert report.up.mean_bps == 1_211_200
    assert "mahimahi down.trace, uplink up.trace, by" in destination.read_text()


def test_iperf3s_two_directions_may_be_two_files(destination: Path) -> None:
    options = Options(uplink=RECORDINGS / "iperf3-udp-forward-server.json")
    report = import_file(RECORDINGS / "iperf3-tcp-reverse.json", destination, options)
    assert report.down is not None
    assert report.up is not None
    assert report.down.mean_bps == pytest.approx(20e6, rel=0.01)
    assert report.up.mean_bps == pytest.approx(8e6, rel=0.05)
    assert len(plain.load(destination)) == 4


def test_what_the_uplinks_file_says_is_told_too(destination: Path) -> None:
    options = Options(uplink=RECORDINGS / "iperf3-tcp-forward.json")
    notes = import_file(RECORDINGS / "iperf3-udp-reverse.json", destination, options).notes
    assert (
        notes.count("the uplink is what was sent, not what arrived: the server's JSON has that")
        == 1
    )


def test_a_pipe_is_read_once(destination: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"seq 1 100000 >'{pipe}'"]):
        report = import_file(pipe, destination)
    assert (report.format, report.samples) == ("mahimahi", 1000)


def test_a_queues_delay_that_iperf3_made_is_left_out_unless_asked_for(destination: Path) -> None:
    source = RECORDINGS / "iperf3-tcp-bidir.json"
    report = import_file(source, destination)
    assert report.columns == ("up",)
    assert "left out, as not named to be kept: rtt" in report.notes
    report = import_file(source, destination, Options(keep=("rtt",)), overwrite=True)
    assert report.columns == ("rtt",)
    trace = plain.load(destination)
    assert all(sample.rtt_s and sample.rtt_s > 0 for sample in trace)
    assert {sample.up_bps for sample in trace} == {None}


def test_an_rtt_that_no_trace_may_have_is_refused_where_it_is_kept(
    destination: Path, tmp_path: Path
) -> None:
    text = (RECORDINGS / "iperf3-tcp-bidir.json").read_text()
    (tmp_path / "x.json").write_text(re.sub(r'"rtt":\s*[1-9]\d*', '"rtt": 12000000', text))
    with pytest.raises(TraceError, match=r"x\.json: an RTT of 12 s; allowed: up to 10 s, or rtt"):
        import_file(tmp_path / "x.json", destination, Options(keep=("up", "rtt")))
    assert not destination.exists()
    import_file(tmp_path / "x.json", destination)
    assert plain.load(destination)


def test_linklabs_own_format_keeps_everything(tmp_path: Path, destination: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text(CSV)
    report = import_file(source, destination)
    assert report.down is not None
    assert plain.load(destination) == plain.load(source)
    assert destination.read_text().startswith("# licence: CC0\n# imported from: csv a.csv")
    assert (report.samples, report.down.gaps, report.down.longest_gap_s) == (3, 1, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bin_s": 0.0}, "bins of 0.0 s; allowed: whole milliseconds, 1 ms to 3600 s"),
        ({"bin_s": 0.0015}, "bins of 0.0015 s; allowed: whole milliseconds"),
        ({"bin_s": float("nan")}, "bins of nan s; allowed: whole milliseconds"),
        ({"opportunity_bytes": 0}, "opportunities of 0 bytes; allowed: 1 to 65535 bytes"),
        ({"device": "client"}, "mahimahi has no ends; allowed: a device with iperf3"),
        ({"keep": ["down"]}, "'down' is nothing to keep; allowed: up, rtt, loss"),
        ({"format": "csv", "opportunity_bytes": 9}, "csv has no opportunities; allowed: with"),
        ({"format": "ucc", "uplink": Path("u")}, "ucc has both directions in one file; allowed:"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    source: Path, destination: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        import_file(source, destination, Options(**options))
    assert str(caught.value).startswith(f"{source}: {message}")
    assert not list(destination.parent.iterdir())


@pytest.mark.parametrize("wrong", ["source", "uplink"])
def test_a_wrong_file_is_named_and_nothing_is_left(
    source: Path, destination: Path, wrong: str
) -> None:
    uplink = mahimahi(source.with_name("up"), [1])
    file = {"source": source, "uplink": uplink}[wrong]
    file.write_text(file.read_text() + "x\n")
    with pytest.raises(TraceError) as caught:
        import_file(source, destination, Options(format="mahimahi", uplink=uplink))
    assert str(caught.value).startswith(f"{file}:")
    assert "'x'" in str(caught.value)
    assert not list(destination.parent.iterdir())


def test_short_samples_become_means(tmp_path: Path, destination: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text(
        "t,down_mbit,up_mbit,rtt_ms,loss\n0,8,4,50,0.01\n0.5,4,4,,0.03\n1.5,2,,70,0\n# end: 2.25 s\n"
    )
    report = import_file(source, destination, Options(bin_s=1.0))
    assert plain.load(destination) == (
        TraceSample(10**9, 6_000_000, 4_000_000, 0.05, 0.02),
        TraceSample(10**9, 3_000_000, 4_000_000, 0.07, 0.015),
        TraceSample(250_000_000, 2_000_000, None, 0.07, 0.0),
    )
    assert report.samples == 3
    assert "# means over 1 s\n" in destination.read_text()


def test_a_trace_of_delays_has_no_rates(tmp_path: Path, destination: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("t,rtt_ms,loss\n0,40,0\n1,60,0.5\n2,50,\n")
    report = import_file(source, destination)
    assert (report.down, report.up, report.columns) == (None, None, ("rtt", "loss"))
    assert report.delays is not None
    assert (report.delays.median_s, report.delays.p95_s) == (0.05, 0.06)
    assert report.delays.loss_ratio == 0.25
    assert destination.read_text().endswith("t,rtt_ms,loss\n0,40,0\n1,60,0.5\n2,50,\n# end: 3 s\n")
    assert plain.load(destination) == plain.load(source)


@pytest.mark.parametrize(
    ("most", "value", "says"),
    [
        ("trace.MAX_SAMPLES", 2, "a.csv: has more than 2 samples; allowed: fewer and longer"),
        ("lines.MAX_LINES", 3, "a.csv:4: has more than 3 lines; allowed: fewer, such as every"),
    ],
)
def test_a_recording_that_is_too_long_is_refused(
    tmp_path: Path,
    destination: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: str,
    value: int,
    says: str,
) -> None:
    source = tmp_path / "a.csv"
    source.write_text(CSV)
    monkeypatch.setattr(f"linklab.traces.{most}", value)
    for use in (lambda: import_file(source, destination), lambda: plain.load(source)):
        with pytest.raises(TraceError, match=says):
            use()
    assert not list(destination.parent.iterdir())


def test_a_wrong_source_leaves_the_old_destination(source: Path, destination: Path) -> None:
    destination.write_text("mine")
    source.write_text("2\n1\n")
    with pytest.raises(TraceError, match="1 is less than 2"):
        import_file(source, destination, overwrite=True)
    assert destination.read_text() == "mine"
    assert list(destination.parent.iterdir()) == [destination]


def test_a_file_can_be_imported_over_itself(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(CSV)
    before = plain.load(file)
    import_file(file, file, overwrite=True)
    assert plain.load(file) == before


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """40 MB of lines, in a process that may not take 40 MB more than it has when it begins."""
    big = tmp_path / "big"
    with big.open("w") as file:
        for begin in range(0, 5_000_000, 50_000):
            file.write("".join(f"{time}\n" for time in range(begin, begin + 50_000)))
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from linklab.importers.importing import import_file\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "import_file(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", program, str(big), str(tmp_path / "x.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert resource.getpagesize() >= 1024  # ru_maxrss is in kB
    assert big.stat().st_size > 38_000_000
    assert int(done.stdout) < 38_000
