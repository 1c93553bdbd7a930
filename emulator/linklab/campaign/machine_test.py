from pathlib import Path

import pytest

from linklab.campaign import machine
from linklab.core.paths import MULTILINK


def test_a_machine_is_like_itself() -> None:
    facts = machine.facts()
    assert machine.differences(facts, facts) == []
    assert {
        "linklab (SHA-256)",
        "multilink (SHA-256)",
        "guest kernel",
        "guest image",
    } <= facts.keys()
    assert MULTILINK.exists() is (facts["multilink (SHA-256)"] != "unknown")


def test_what_differs_is_said_in_words() -> None:
    wanted = {"h2o": "2.2.5", "multilink (SHA-256)": "a" * 64, "curl": "8"}
    found = {"h2o": "2.2.6", "multilink (SHA-256)": "b" * 64}
    assert machine.differences(wanted, found) == [
        "h2o is 2.2.6 instead of 2.2.5",
        "multilink (SHA-256) is bbbbbbbbbbbb instead of aaaaaaaaaaaa",
        "curl is none instead of 8",
    ]


def test_a_changed_source_is_another_linklab(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "linklab"
    (package / "campaign").mkdir(parents=True)
    monkeypatch.setattr(machine, "__file__", str(package / "campaign" / "machine.py"))
    monkeypatch.setattr(machine, "PYTHON_PATH", tmp_path)
    (package / "lab.py").write_text("a = 1\n")
    before = machine._sources()
    (package / "lab_test.py").write_text("assert True\n")
    assert machine._sources() == before
    (package / "lab.py").write_text("a = 2\n")
    assert machine._sources() != before
