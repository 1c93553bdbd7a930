"""Runs what a publication leaves open, in the guest: 256 kB over either link."""

import json
from pathlib import Path

import pytest
from linklab.commands.cli import main
from linklab.report import publication

TEXT = """\
name: open
title: A paper that says little
source: eMPTCP
runs: 1
unknowns:
  - what: Wi-Fi
    why: no rate is stated
    range: 0.2 to 12 Mbit/s
    values: [{name: wifi-slow, set: {links.wifi.down: 200 kbit/s}}]
  - what: round trip of LTE
    why: none is stated
    range: 60 to 80 ms
    values: [{name: rtt-80, set: {links.lte.rtt: 80 ms}}]
statements:
  - {metric: download, source: a, each: &it [emptcp-256kb-good-bad], of: curl-wifi, to: [curl-lte], is: less}
  - {metric: download, source: b, each: *it, of: curl-wifi, to: [curl-lte], is: more}
  - {metric: link-share, link: wifi, source: c, within: 1 %, values: {emptcp-256kb-good-bad: {curl-wifi: 100 %}}}
  - {metric: download, source: d, each: *it, of: curl-lte, to: [curl-wifi], ratio: below 1 %}
"""


def test_statements_are_told_by_what_they_hang_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wi-Fi is the faster link, until its rate is one that the publication allows as well. The rest
    changes nothing. The same runs, read again, say the same."""
    monkeypatch.setattr(publication, "names", lambda: ["open"])
    monkeypatch.setattr(publication, "find", lambda name: publication.parse(TEXT, f"{name}.yaml"))
    page = tmp_path / "page.html"
    out = ["--out", str(tmp_path / "runs"), "--report", str(page)]
    assert main(["reproduce", "open", "--unknowns", "--json", *out]) == 0
    made = json.loads(capsys.readouterr().out)["unknowns"]
    assert list(made["settings"]) == ["ours", "wifi-slow", "rtt-80", "together-1"]
    assert [(one["verdict"], one["on"]) for one in made["statements"]] == [
        ("depends", ["Wi-Fi"]),
        ("depends", ["Wi-Fi"]),
        ("always", []),
        ("never", []),
    ]
    runs = list((tmp_path / "runs").rglob("summary.json"))
    assert len(runs) == 2 * len(made["settings"])
    assert "depends on Wi-Fi" in page.read_text()
    read = ["--from", str(tmp_path / "runs"), *map(str, (tmp_path / "runs/unknowns").iterdir())]
    assert main(["reproduce", "open", "--unknowns", "--json", *read]) == 0
    assert json.loads(capsys.readouterr().out)["unknowns"] == made
    assert main(["reproduce", "open", "--unknowns", *read]) == 0
    assert "○●" in (told := capsys.readouterr().out)
    assert "left out" not in told
