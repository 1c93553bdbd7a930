import json
from pathlib import Path

import pytest

from linklab.commands import cli
from linklab.core.link_kinds import KINDS, either
from linklab.field import capture_test
from linklab.field import simulated_for_test as simulated
from linklab.field.simulated_for_test import SimulatedLink
from linklab.scenario import load

BOTH = (SimulatedLink(), SimulatedLink("lte", "rmnet0", rtt_s=0.05))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a command says which cannot be carried out, and that leaves nothing."""
    before = sorted(Path().rglob("*"))
    assert cli.main(["import", *words]) == 2
    assert sorted(Path().rglob("*")) == before
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("linklab: ")
    assert len(said.err.splitlines()) == 1
    return said.err.removeprefix("linklab: ").strip()


def test_a_download_becomes_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    simulated.run_dir(Path("r"), BOTH)
    assert cli.main(["import", "r", "--scenario", "drive.yaml"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "drive.yaml: 2 links of 1 recording",
        "wifi        mean 20.00 Mbit/s, round trip 20.0 ms, queue 1006 kB",
        "lte         mean 20.00 Mbit/s, round trip 50.0 ms, queue 1006 kB",
    ]
    assert said[-2].startswith("note: A download does not show what went up")
    assert said[-1] == "the same again: linklab run drive.yaml -a alg3"
    assert sorted(path.name for path in Path().glob("drive*")) == [
        "drive-lte.csv",
        "drive-wifi.csv",
        "drive.yaml",
    ]
    scenario = load("drive.yaml")
    assert Path("drive.yaml").read_text().startswith("# imported from: r, by linklab ")
    assert list(scenario.links) == ["wifi", "lte"]


def test_a_name_that_is_no_utf_8_stands_there_with_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulated.run_dir(Path("r\udcff"), BOTH)
    assert cli.main(["import", "r\udcff", "--scenario", "r\udcff/drive.yaml"]) == 0
    assert capsys.readouterr().out.startswith("r\\udcff/drive.yaml: ")
    for name in ("drive.yaml", "drive-wifi.csv"):
        assert "# imported from: r\\udcff, by linklab " in Path("r\udcff", name).read_text()


def test_json_has_what_is_known_of_each_link(capsys: pytest.CaptureFixture[str]) -> None:
    simulated.run_dir(Path("r"), BOTH)
    assert cli.main(["import", "r", "--scenario", "drive.yaml", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["recordings"] == [{"source": "r", "contestant": "alg3", "download_s": 10.0}]
    (wifi,) = report["links"]["wifi"]
    assert wifi["filled_s"] == pytest.approx(9.8, abs=0.2)


def test_a_kind_is_asked_for_where_nothing_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    simulated.run_dir(Path("r"), [SimulatedLink("home", "usb0")])
    words = ("r", "--scenario", "x.yaml")
    assert refused(capsys, *words) == (
        f"link 'home' of 'usb0': is it {either(KINDS)}? Needed: --kind home=KIND"
    )
    assert cli.main(["import", *words, "--kind", "home=wifi"]) == 0
    assert load("x.yaml").links["home"].kind.name == "wifi"


def test_captures_become_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    capture_test.download(Path("wlan0.pcap"))
    capture_test.download(Path("rmnet0.pcap"))
    assert cli.main(["import", "wlan0.pcap", "rmnet0.pcap", "--scenario", "drive.yaml"]) == 0
    said = capsys.readouterr().out
    assert "wlan0       mean 24." in said
    assert "the same again" not in said
    assert [link.kind.name for link in load("drive.yaml").links.values()] == ["wifi", "lte"]
    Path("notes.txt").write_text("none")
    assert refused(capsys, "notes.txt", "--scenario", "x.yaml") == (
        "notes.txt: is no capture; allowed: run directories of downloads, and files of tcpdump"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("none --scenario x.yaml", "none: …needed: run directories of downloads, or files"),
        ("bare --scenario x.yaml", "bare: …needed: what `multilink get --run-dir`"),
        ("empty.pcap --scenario x.yaml", "empty.pcap: …allowed: run directories of downloads"),
        ("begun.pcap --scenario x.yaml", "begun.pcap: …needed: what tcpdump"),
        ("late.pcap --scenario x.yaml", "late.pcap: …needed: what tcpdump"),
        ("w.pcap d/w.pcap --scenario x.yaml", "d/w.pcap: of the same time as w.pcap, and called"),
        ("late.pcap", "late.pcap: is a capture, …with --scenario"),
        ("r --scenario x.csv", "--scenario x.csv: is no name of a scenario; allowed: up to 64 of"),
        ("r --scenario X.yaml", "--scenario X.yaml: is no name of a scenario"),
        ("r --scenario there.yaml", "there.yaml: exists; allowed: another name, or --force"),
        ("r --scenario no/x.yaml", "No such file or directory"),
        ("r --scenario x.yaml --bin 1", "--bin: does not go with --scenario; allowed: --kind"),
        ("r --scenario x.yaml --licence CC0-1.0", "--licence: does not go with --scenario"),
        ("r --scenario x.yaml --kind wifi=6g", "--kind wifi=6g: allowed is LINK=KIND, with "),
        ("r --scenario x.yaml --kind eth=lte", "--kind eth: no such link was recorded; there are"),
        ("r --kind wifi=lte", "r: …allowed: one file, or"),
        ("there.yaml --kind wifi=lte", "--kind: a trace has no kind; allowed: with --scenario"),
        ("named --scenario x.yaml", "link 'Home Wi-Fi': 'Home Wi-Fi' is no name of a link"),
    ],
)
def test_what_cannot_be_imported_is_said(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    simulated.run_dir(Path("r"), BOTH)
    simulated.run_dir(Path("named"), [SimulatedLink("Home Wi-Fi")])
    Path("there.yaml").write_text("mine")
    Path("bare").mkdir()
    Path("d").mkdir()
    whole = capture_test.download(Path("w.pcap")).read_bytes()
    Path("d/w.pcap").write_bytes(whole)
    Path("empty.pcap").write_bytes(b"")
    Path("begun.pcap").write_bytes(whole[:24])
    capture_test.download(Path("late.pcap"), handshake=False)
    shown = refused(capsys, *words.split())
    assert all(part in shown for part in said.split("…"))


def test_what_is_there_is_replaced_if_asked_for() -> None:
    simulated.run_dir(Path("r"), BOTH)
    Path("x.yaml").write_text("mine")
    assert cli.main(["import", "r", "--scenario", "x.yaml", "--force"]) == 0
    assert load("x.yaml").title == "Recorded: wifi, lte"
