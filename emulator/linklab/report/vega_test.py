from pathlib import Path

import pytest
import vl_convert

from linklab import scenario
from linklab.core.statistics import Interval
from linklab.report import charts, vega
from linklab.runs.run_figures import ProcessFigures
from linklab.runs.time_series import Range

HS = scenario.find("hs-s7")
RANGE = Range(1, "wifi", 0.5, 2.0, 0, 500_000, 400_000, 1_000, "taken over", "")
USED = ProcessFigures(20, 0.1, 0.2, 0.3, 0.4, 0.5, 4.0, 15e6, 0.01, 3e8)
SPECS = {
    "times": charts.times(
        {"alg3": [(1, 2.0), (2, 9.5)], "x": [(1, 3.0)]}, {"alg3": Interval(2, 9.5)}
    ),
    "few": charts.times({"alg3": [(1, 2.0)], "x": [(1, 3.0)]}, {"alg3": None, "x": None}),
    "link rates": charts.link_rates(
        HS,
        {1: {"wifi": [(0, 8e7), (0.5, 7e7)]}, 2: {"wifi": [(0, 6e7)]}},
        {"wifi": [(0.0, 5e7)], "lte": [(0.0, 1e7)]},
        0.5,
    ),
    "requests": charts.requests(HS, [RANGE]),
    "energy": charts.energies(
        {
            "alg3": [(1, 2.0, 60.0)],
            "naive": [(1, 3.0, 70.0)],
            "one": [(1, 9.0, 30.0), (2, 9.0, 40.0)],
        }
    ),
    "power": charts.powers(HS, [(0.0, 3.0, {"wifi": 1.0}), (0.5, 1.0, {"wifi": 0.2})], 0.5),
    "loads": charts.loads(
        {"alg3": {"client": [USED, USED], "server": [USED]}, "x": {"client": [USED]}}
    ),
    "processes": charts.processes({"client": [(0.0, 10.0), (1.0, 20.0)]}, "% of a core"),
}


@pytest.mark.parametrize("name", SPECS)
def test_charts_are_what_vega_lite_draws(name: str) -> None:
    svg = vega.drawn(SPECS[name], "svg").decode()
    assert svg.startswith("<svg")
    assert svg.count("<path") > 3
    assert vega.drawn(SPECS[name], "png").startswith(b"\x89PNG")


def test_words_of_others_do_not_end_the_process() -> None:
    """XML does not allow the control characters, nor the last one."""
    hostile = "a\x1b]0;b\x00\u202e\ud800\ufffe<&"
    spec = charts.times({hostile: [(1, 2.0)]}, {hostile: None})
    svg = vega.drawn({**spec, "title": hostile}, "svg").decode()
    assert svg.count(r"a\x1b]0;b\x00\u202e\ud800\ufffe&lt;&amp;") >= 2
    assert vega.drawn({**spec, "title": hostile}, "png").startswith(b"\x89PNG")


def test_no_chart_of_ours_has_anything_to_escape() -> None:
    for spec in SPECS.values():
        assert vega._escaped(spec) == spec


def test_every_run_the_median_and_the_interval_are_drawn() -> None:
    values = SPECS["times"]["data"]["values"]
    assert [row["s"] for row in values if "s" in row] == [2.0, 9.5, 3.0]
    assert [row for row in values if "median" in row] == [
        {"client": "alg3", "median": 5.75, "low": 2, "high": 9.5},
        {"client": "x", "median": 3.0},
    ]
    assert SPECS["times"]["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


def test_of_few_runs_no_interval_is_said() -> None:
    assert not [row for row in SPECS["few"]["data"]["values"] if "low" in row]
    assert "low" not in str(SPECS["few"]["layer"])


def test_the_median_is_of_the_runs_that_go_on() -> None:
    values = SPECS["link rates"]["data"]["values"]
    assert [(row["t"], row["m"]) for row in values if "m" in row] == [(0, 70), (0.5, 70)]
    assert [row["c"] for row in values if "c" in row] == [50], "LTE was not used"


def test_a_request_is_a_line_through_the_file() -> None:
    (row,) = SPECS["requests"]["data"]["values"]
    assert (row["t"], row["e"], row["a"], row["b"], row["o"]) == (0.5, 2.0, 0, 0.4, "taken over")


def test_loads_are_in_percent_of_a_core() -> None:
    values = SPECS["loads"]["data"]["values"]
    assert [(row["client"], row["p"], row["v"]) for row in values if "v" in row] == [
        ("alg3", "client", 20),
        ("alg3", "client", 20),
        ("alg3", "server", 20),
        ("x", "client", 20),
    ]
    assert {(row["low"], row["median"], row["high"]) for row in values if "low" in row} == {
        (10, 20, 30)
    }
    assert SPECS["processes"]["encoding"]["color"]["scale"]["domain"] == ["client"]


def test_the_library_is_bundled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def bundle(snippet: str, vl_version: str) -> str:
        calls.append(vl_version)
        return f"made;{snippet}"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    assert vega.javascript() == vega.javascript()
    assert calls == [vega.VERSION]
    (kept,) = (cache / "vega").iterdir()
    assert kept.read_text().startswith("made;")


def test_the_front_is_what_nobody_beats_in_both() -> None:
    points = [(9.0, 35.0), (2.0, 60.0), (3.0, 70.0), (2.0, 65.0), (9.0, 40.0)]
    assert charts.front(points) == [(2.0, 60.0), (9.0, 35.0)]
    values = SPECS["energy"]["data"]["values"]
    assert [(row["fs"], row["fj"]) for row in values if "fs" in row] == [(2, 60), (9, 35)]
    assert [row["mj"] for row in values if "mj" in row] == [60, 70, 35]


def test_power_is_of_each_link_and_of_all() -> None:
    values = SPECS["power"]["data"]["values"]
    assert [(row["l"], row["w"]) for row in values] == [
        ("Wi-Fi", 1.0),
        ("all", 3.0),
        ("Wi-Fi", 0.2),
        ("all", 1.0),
    ]
    assert SPECS["power"]["layer"][1]["data"]["values"][0]["t"] == 0.5
