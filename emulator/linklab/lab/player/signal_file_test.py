from pathlib import Path

from linklab.lab.player.signal_file import SignalFile, text


def test_the_form_is_that_of_proc_net_wireless() -> None:
    lines = text({"wlan0": -56.4}).splitlines()
    assert lines[0].startswith("Inter-| sta-|   Quality")
    assert lines[2].split()[:5] == ["wlan0:", "0000", "54.", "-56.", "-256"]
    assert len(lines) == 3


def test_quality_ends_where_mac80211_ends_it() -> None:
    assert text({"wlan0": -20.0}).splitlines()[2].split()[2:4] == ["70.", "-20."]
    assert text({"wlan0": -120.0}).splitlines()[2].split()[2:4] == ["0.", "-120."]


def test_the_file_changes_with_the_signal_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "wireless"
    file = SignalFile(path)
    file.show("rmnet0", None)
    assert not path.exists()
    file.show("wlan0", -60.0)
    first = path.stat().st_ino
    file.show("wlan0", -60.0)
    assert path.stat().st_ino == first
    file.show("wlan0", -61.0)
    assert path.stat().st_ino != first  # Replaced as a whole: nobody reads half of it
    file.show("wlan0", None)
    assert len(path.read_text().splitlines()) == 2
    assert list(tmp_path.iterdir()) == [path]
