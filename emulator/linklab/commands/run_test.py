from argparse import Namespace
from pathlib import Path

import pytest

from linklab import scenario
from linklab.commands import compare, exec, run
from linklab.commands.conftest import Runs, printed
from linklab.commands.options import UsageError


def test_a_run_for_machines(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(options) == 0
    read = printed(capsys)
    assert (read["scenario"], read["algorithm"], read["seed"]) == ("small", "naive", 1)
    assert read["error"] is None
    assert read["figures"]["download_s"] == pytest.approx(0.1)
    assert read["wall_s"] == 0.5
    assert (Path(read["run_dir"]) / "summary.json").exists()


def test_links_without_a_file_run_and_are_saved(
    runs: Runs, options: Namespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options.scenario, options.link = None, ["wifi=20mbit,30ms,1%", "lte=fast-4g"]
    options.save = tmp_path / "walk.yaml"
    assert run.run(options) == 0
    assert f"--save: wrote the scenario walk: {options.save}\n" in capsys.readouterr().err
    assert compare.run(Namespace(**{**vars(options), "scenarios": [], "save": None})) == 0
    options.command = ["curl"]
    with pytest.raises(UsageError, match=r"--save: .*walk.yaml is there already; allowed: a new"):
        exec.run(options)
    saved, unsaved = (one.scenario for one in runs.requests)
    assert (saved.name, unsaved.name) == ("walk", "links")
    assert scenario.load(options.save) == saved
    assert saved.links == unsaved.links
    assert saved.links["lte"].down_rate_bps == 9_000_000


@pytest.mark.parametrize(
    ("link", "name", "save", "words"),
    [
        ([], None, None, "which links\\? allowed: a scenario, or links such as wifi=20mbit,30ms"),
        (["wifi=dsl"], "tm", None, "which links\\? allowed: a scenario, or links .* not both"),
        (["dsl"], None, None, "--link dsl: has no name; allowed: such as wifi=20mbit,30ms"),
        (["a=dsl", "a=dsl"], None, None, "--link a=dsl: is the second link of this name; allowed"),
        (["wifi=20mbit"], None, None, "^links.wifi: 'rtt' is missing; needed: down, up, rtt"),
        (["wi fi=dsl"], None, None, "^links: 'wi fi' is no name of a link; allowed: up to 12"),
        ([], "tm", "a.yaml", "--save goes with --link: a scenario has its file"),
        (["wifi=dsl"], None, "a.yml", "--save: a.yml is no name of a scenario; allowed: "),
    ],
)
def test_links_that_cannot_be_are_refused(
    options: Namespace, link: list[str], name: str | None, save: str | None, words: str
) -> None:
    options.link, options.scenario = link, name
    options.save = None if save is None else Path(save)
    with pytest.raises((UsageError, scenario.ScenarioError), match=words):
        run.run(options)


def test_a_run_for_people(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.json = False
    assert run.run(options) == 0
    captured = capsys.readouterr()
    first, wifi, lte, last = captured.out.splitlines()
    assert first.startswith("small-naive-seed1: 0.100 s, 80.0 Mbit/s, efficiency ")
    assert wifi.split() == ["wifi", "0.5", "MB", "(55", "%)"]
    assert lte.split() == ["lte", "0.5", "MB", "(45", "%)"]
    assert last == f"run directory: {options.out}/small-naive-seed1"
    assert "place: host, clock: real (as asked)" in captured.err


def test_a_failed_run_says_why_and_where(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.error = lambda request: "H2O ended with -9"
    assert run.run(options) == 1
    read = printed(capsys)
    assert (read["error"], read["figures"]) == ("H2O ended with -9", None)
    options.json = False
    assert run.run(options) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "linklab: small-naive-seed1: H2O ended with -9\n" in captured.err
    assert f"run directory: {options.out}/small-naive-seed1-2\n" in captured.err


def test_a_client_that_failed_fails_its_run(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.exit_code = lambda _: 3
    assert run.run(options) == 1
    assert printed(capsys)["error"] == "the client ended with 3: err"


def test_packets_of_links_are_recorded_if_asked_for(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.pcap = "all"
    assert run.run(options) == 0
    options.pcap, options.tls_keys = "lte", True
    assert run.run(options) == 0
    assert [(one.pcap, one.tls_keys) for one in runs.requests] == [
        (("wifi", "lte"), False),
        (("lte",), True),
    ]
    options.pcap = "5g"
    with pytest.raises(UsageError, match="--pcap 5g: small has no such link; allowed: wifi, lte,"):
        run.run(options)
