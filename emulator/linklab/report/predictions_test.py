from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from linklab import scenario
from linklab.field import prediction, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.prediction import Prediction
from linklab.field.simulated_for_test import SimulatedLink
from linklab.report import html, page, predictions, vega

HS = scenario.find("hs-s7")


@pytest.fixture
def beside(tmp_path: Path) -> Prediction:
    links = (SimulatedLink(), SimulatedLink("lte", "rmnet0", rate_bps=lambda _: 50e6))
    return prediction.beside(
        recording.read(simulated.run_dir(tmp_path / "1", links, 30.0)),
        [recording.read(simulated.run_dir(tmp_path / "2", links, 33.0))],
    )


def test_the_table_has_figures_and_courses(beside: Prediction) -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(predictions.table("results/1", beside, "The uplinks are assumed."))
    said = [line.strip() for line in capture.get().splitlines()]
    assert said[0] == "results/1  alg3 as recorded, and in the lab over links made of the record"
    assert ["download, s", "30.000", "33.000", "+10.0"] in [
        line.rsplit(maxsplit=3) for line in said
    ]
    over_time = said[next(n for n, line in enumerate(said) if line.startswith("Mbit/s from")) :]
    assert over_time[0].split() == ["Mbit/s", "from", "Wi-Fi", "lab", "LTE", "lab"]
    assert len(over_time) == 1 + 11 + 1 + 1  # 33 steps of a second, three at a time.
    assert over_time[-1] == "The uplinks are assumed."
    assert over_time[2].split() == ["3", "s", "20.0", "20.0", "50.0", "50.0"]


def test_the_page_shows_both_over_time(beside: Prediction) -> None:
    told = replace(HS, description="The uplinks are assumed.")
    shown = page.context([], {}, {}, [], ["linklab"], {"results/<1>": (told, beside)})
    text = html.render(shown)
    assert "results/&lt;1&gt;, recorded and in the lab" in text
    assert "+10.0&nbsp;%" in text
    assert "The uplinks are assumed." in text
    (chart,) = page.all_charts(shown)
    values = chart.spec["data"]["values"]
    assert len(values) == 2 * 2 * (len(beside.links[0].steps) + 1)
    assert max(row["t"] for row in values) == 33.0
    assert {"l": "LTE", "t": 3.0, "m": 50.0} in [
        {**row, "m": round(row["m"], 0)} for row in values if "m" in row
    ]
    assert vega.drawn(chart.spec, "svg").startswith(b"<svg")
