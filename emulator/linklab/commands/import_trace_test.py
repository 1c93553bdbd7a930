"""Tests of `linklab import` as called from a shell."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from linklab import scenario
from linklab.commands import cli, import_trace
from linklab.importers import data_sets_test, ping_test
from linklab.importers.registry import FORMATS, format_of
from linklab.links import full_load
from linklab.models.trace import Trace
from linklab.traces import plain

RECORDINGS = Path(__file__).parents[1] / "importers" / "recordings"

UCC = """\
Timestamp,DL_bitrate,UL_bitrate,State,PINGAVG
2019.12.16_13.40.04,8000,2000,D,50
2019.12.16_13.40.05,4000,1000,D,-
2019.12.16_13.40.06,8000,2000,D,70
"""
SOURCES = {
    "csv": "t,down_mbit,up_mbit\n0,8,2\n1,4,1\n2,8,2\n",
    "mahimahi": "".join(f"{time}\n" for time in range(1, 3001)),
    "ucc": UCC,
    "iperf3": (RECORDINGS / "iperf3-tcp-reverse.json").read_text(),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a recording in each format."""
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        Path(f"{name}.trace").write_text(text)
    return tmp_path


def imported(*words: str) -> int:
    """What the command ends with, also where its options are refused."""
    try:
        return cli.main(["import", *words])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is said to an import that is not possible; it leaves nothing behind."""
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert imported(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
    return captured.err.removeprefix("linklab: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("name", "mean_bps", "columns"),
    [
        ("csv", 20e6 / 3, ["up"]),
        ("mahimahi", 12_112_000, []),
        ("ucc", 20e6 / 3, ["up", "rtt"]),
        ("iperf3", pytest.approx(20e6, rel=0.01), []),
    ],
)
def test_a_recording_becomes_a_trace_that_a_scenario_plays(
    capsys: pytest.CaptureFixture[str], name: str, mean_bps: Any, columns: list[str]
) -> None:
    assert imported(f"{name}.trace", "--json") == 0
    captured = capsys.readouterr()
    read = json.loads(captured.out)
    assert captured.err == ""
    assert (read["format"], read["source"]) == (name, f"{name}.trace")
    assert read["destination"] == f"{name}.csv"
    assert read["columns"] == columns
    assert read["down"]["mean_bps"] == mean_bps
    assert read["samples"] == len(plain.load(Path(f"{name}.csv")))
    assert (read["up"] is not None) == ("up" in columns)
    file = Path("played.yaml")
    file.write_text(
        "name: played\npayload: {size: 1 MB}\nlinks:\n"
        "  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}\n"
        "  lte: {down: 20 Mbit/s, up: 10 Mbit/s, rtt: 40 ms,\n"
        f"    trace: {{file: ./{name}.csv}}}}\n"
    )
    assert scenario.find(str(file)).links["lte"].model(Trace) is not None


HANDBOOK = Path(__file__).parents[2] / "handbook" / "how-to" / "import-a-trace.md"
HINTS = {"help": import_trace.EPILOG, "handbook": HANDBOOK.read_text()}


@pytest.mark.parametrize("where", HINTS)
def test_what_is_said_of_traces_plays_the_rate_that_was_recorded(
    capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """The command and the keys as they stand there, whatever rates the link has."""
    Path("drive.json").write_text(SOURCES["iperf3"])
    command = re.search(r"linklab (import drive\.json -o drive\.csv)", HINTS[where])
    keys = re.findall(r"trace: \{[^}]*\}", HINTS[where])
    assert command is not None
    assert keys
    assert imported(*command[1].split()[1:], "--json") == 0
    mean_bps = json.loads(capsys.readouterr().out)["down"]["mean_bps"]
    for key in keys:
        file = Path("played.yaml")
        file.write_text(
            "name: played\npayload: {size: 100 MB}\nlinks:\n"
            f"  lte: {{down: 99 Mbit/s, up: 9 Mbit/s, rtt: 40 ms, {key}}}\n"
        )
        bits = length_s = 0.0
        for span in full_load.spans(scenario.find(str(file)), 1, ["lte"]):
            end_s = min(span.end_s, 2.0)
            bits += span.states["lte"].down_rate_bps * (end_s - span.start_s)
            length_s = end_s
            if span.end_s >= 2.0:
                break
        assert bits / length_s == pytest.approx(mean_bps, rel=0.01)


def test_the_handbook_has_the_columns_and_limits_of_a_trace() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", HINTS["handbook"], re.MULTILINE)
    assert [name for name, _, _ in rows] == ["t", "down_mbit", *plain.COLUMNS.values()]
    assert [name for name, _, without in rows if without == "needed"] == ["t"]
    limits = {name: re.search(r"0 to (\d+)", text) for name, text, _ in rows}
    for name, limit in limits.items():
        if limit is None:
            continue
        for value, code in ((limit[1], 0), (str(int(limit[1]) + 1), 2)):
            more = "" if name == "down_mbit" else ",down_mbit"
            end = "" if name == "down_mbit" else ",1"
            Path("a.csv").write_text(
                f"t,{name}{more}\n0,{value}{end}\n1,{value}{end}\n# end: 2 s\n"
            )
            assert imported("a.csv", "-o", "b.csv", "--force") == code, name


COMMANDS = re.findall(r"`linklab (import .*?)`", HINTS["handbook"])
RECORDED: Final[dict[str, str | bytes]] = {
    "drive.json": SOURCES["iperf3"],
    "ATT.down": SOURCES["mahimahi"],
    "ATT.up": SOURCES["mahimahi"],
    "heavy.down": SOURCES["mahimahi"],
    "B_2019.12.16_13.40.04.csv": UCC,
    "mine.csv": SOURCES["csv"],
    "car-driving-trace-1.csv": data_sets_test.DRIVE,
    "Lumos5G-v1.0.csv": data_sets_test.LUMOS.replace("\n2,", "\n3,"),
    "throughput.csv": data_sets_test.MOTORWAY,
    "RTT_Loss.csv": data_sets_test.MOTORWAY_PINGS,
    "net_iperf.csv": data_sets_test.WET_RATES,
    "net_ping.csv": data_sets_test.WET_PINGS,
    "irtt-10ms.csv": data_sets_test.LENS,
    "call.csv": "t,rtt_ms\n1700000000.5,20.5\n1700000001.5,30\n",
    "ping-d.log": ping_test.delays(),
    "ping.log": ping_test.LINUX.replace("time 4005ms", "time 801ms"),
}
"""A small file for each command of the handbook, in the form of its tool or data set."""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_handbooks_commands_import_what_a_scenario_plays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    (tmp_path / "there").mkdir()
    for name, content in RECORDED.items():
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "there" / name).write_bytes(raw)
    words = [f"there/{word}" if word in RECORDED else word for word in shlex.split(command)[1:]]
    assert imported(*words, "--json") == 0, capsys.readouterr().err
    read = json.loads(capsys.readouterr().out)
    file = Path("played.yaml")
    file.write_text(
        "name: played\npayload: {size: 1 MB}\nlinks:\n"
        f"  lte: {{down: 9 Mbit/s, up: 1 Mbit/s, rtt: 40 ms, trace: {{file: ./{read['destination']}}}}}\n"
    )
    assert scenario.find(str(file)).links["lte"].model(Trace) is not None


def test_the_handbook_has_a_command_for_every_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = set()
    for command in COMMANDS:
        file = shlex.split(command)[1]
        content = RECORDED[file]
        head = content if isinstance(content, bytes) else content.encode()
        found.add(format_of(head, file).name)
    assert found == set(FORMATS)


def test_a_recording_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("ucc.trace", "-o", "drive.csv", "--licence", "CC-BY-4.0") == 0
    assert capsys.readouterr().out.splitlines() == [
        "drive.csv: 3 samples from ucc ucc.trace",
        "down 3.0 s, mean 6.67 Mbit/s, CV 0.28, autocorrelation -0.67 at 1 s, - at 10 s",
        "     0 gaps over 0.5 s, longest 0.0 s",
        "up   3.0 s, mean 1.67 Mbit/s, CV 0.28, autocorrelation -0.67 at 1 s, - at 10 s",
        "     0 gaps over 0.5 s, longest 0.0 s",
        "rtt  3.0 s, median 50.0 ms, 95 % up to 70.0 ms",
    ]
    assert Path("drive.csv").read_text().startswith("# licence: CC-BY-4.0\n")


def test_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("ucc.trace", "--keep", "up") == 0
    assert "note: left out, as not named to be kept: rtt\n" in capsys.readouterr().out


def test_options_reach_the_import(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--format mahimahi --uplink mahimahi.trace --bin 0.5 --json --opportunity-bytes 700"
    assert imported("mahimahi.trace", "-o", "x.csv", *words.split()) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["samples"], read["columns"]) == (6, ["up"])
    assert read["down"]["mean_bps"] == read["up"]["mean_bps"] == 5_600_000
    assert imported("ucc.trace", "--keep", "", "--json") == 0
    assert json.loads(capsys.readouterr().out)["columns"] == []
    phone = str(RECORDINGS / "iperf3-udp-forward-server.json")
    assert imported(phone, "--device", "server", "-o", "phone.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["down"]["mean_bps"] == pytest.approx(8e6, rel=0.05)


def test_the_trace_is_put_here_whatever_the_recordings_place_and_name(here: Path) -> None:
    there = here / "there"
    there.mkdir()
    for name, output in (("a", "a.csv"), ("b.down.txt", "b.down.csv"), (".c", ".c.csv")):
        (there / name).write_text(SOURCES["csv"])
        assert imported(str(there / name)) == 0
        assert (here / output).exists()
    assert sorted(there.iterdir()) == [there / ".c", there / "a", there / "b.down.txt"]


def test_what_is_there_is_replaced_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("csv.csv").write_text("mine")
    said = refused(capsys, "csv.trace")
    assert said == "csv.csv: exists; allowed: another name, or overwriting it"
    assert imported("csv.trace", "--force") == 0
    assert plain.load(Path("csv.csv")) == plain.load(Path("csv.trace"))


def test_a_name_that_is_no_utf_8_stands_there_with_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("dr\udcffive").write_text(SOURCES["mahimahi"])
    assert imported("dr\udcffive", "--licence", "m\udcffine") == 0
    assert capsys.readouterr().out.startswith("dr\\udcffive.csv: ")
    said = Path("dr\udcffive.csv").read_text().splitlines()[:3]
    assert said[0] == "# licence: m\\udcffine"
    assert said[2].startswith("# imported from: mahimahi dr\\udcffive, by linklab")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("none", "none: cannot be read: No such file or directory"),
        (".", ".: several files or a directory make no trace; allowed: one file, or"),
        ("csv.trace --only t", "--only t: allowed is COLUMN=VALUE, such as run_num=3"),
        ("csv.trace --only t=1 --only t=2", "--only t=2: t is given twice; allowed: once"),
        ("csv.trace --only t=1", "csv.trace: …allowed: choosing wi"),
        ("ucc.trace --every 1", "ucc.trace: …allowed: seconds between probes with pi"),
    ],
)
def test_what_cannot_be_imported_is_said(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    shown = refused(capsys, *words.split())
    assert all(part in shown for part in said.split("…"))


def test_options_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("", "csv.trace --format pcap", "csv.trace --bin x", "csv.trace --device tablet"):
        assert imported(*words.split()) == 2
        assert "usage: linklab import" in capsys.readouterr().err
