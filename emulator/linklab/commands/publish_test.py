"""Tests `linklab publish` from the command line: links, reports of runs, a browser."""

import json
import webbrowser
from pathlib import Path

import pytest

from linklab.commands import cli
from linklab.publish.prometheus import LEDGER
from linklab.publish.prometheus_test import run_dir


def publish(tmp_path: Path, *words: str) -> int:
    runs = [tmp_path / "runs" / name for name in ("a", "b")]
    if not runs[0].exists():
        for seed, path in enumerate(runs):
            run_dir(path, seed=seed)
    return cli.main(["publish", *map(str, runs), "--output", str(tmp_path / "runs.om"), *words])


def test_links_are_printed_and_the_last_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    assert publish(tmp_path, "--grafana", "http://g", "--open") == 0
    first, second, together = capsys.readouterr().out.splitlines()
    assert ": published, http://g/d/linklab-live?var-run=20261121T061934-a&from=" in first
    assert "var-run=20261121T061934-b" in second
    what, _, url = together.partition(": ")
    assert what == "small, 1 MB, virtual clock"
    assert url.startswith("http://g/d/linklab-compare?var-scenario=small&")
    assert opened == [url]


def test_where_no_browser_can_be_opened_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert publish(tmp_path, "--open") == 0
    assert "no browser can be opened here" in capsys.readouterr().err


def test_pages_of_runs_are_called_like_the_runs_in_prometheus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path, "--json", "--reports", str(tmp_path / "reports")) == 0
    runs = [one["run"] for one in json.loads(capsys.readouterr().out)]
    pages = {path.name: path.read_text() for path in (tmp_path / "reports").iterdir()}
    assert sorted(pages) == sorted(f"{run}.html" for run in runs)
    assert all("small" in page for page in pages.values())


def test_no_page_is_written_outside_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(tmp_path) == 0
    ledger = tmp_path / LEDGER
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    ledger.write_text("".join(json.dumps({**one, "run": "../out"}) + "\n" for one in lines))
    assert publish(tmp_path, "--reports", str(tmp_path / "reports")) == 2
    assert f"{ledger}: " in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()
