import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklab import scenario
from linklab.commands import cli
from linklab.core.link_kinds import LTE, WIFI, link_title
from linklab.core.link_state import LinkState
from linklab.links import oracle
from linklab.report import plot_picture, plot_terminal, plotting
from linklab.report.plotting import Outage, Plot, Series

BOTH = {"wifi": WIFI, "lte": LTE}

FAST = LinkState(
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=20_000_000,
    delay_s=0.005,
    jitter_s=0.0,
    loss_ratio=0.0,
)


@pytest.fixture
def gone() -> Plot:
    return plotting.of_scenario(scenario.find("wifi-gone"), 1)


def test_a_scenario_is_drawn_to_a_fifth_past_its_oracle(gone: Plot) -> None:
    one = scenario.find("wifi-gone")
    assert gone.end_s == pytest.approx(1.2 * oracle.oracle_s(one))
    assert gone.finishes_s["both links"] == oracle.oracle_s(one)
    assert gone.finishes_s["Wi-Fi alone"] == oracle.single_link_s(one, "wifi")
    assert gone.outages == [Outage("wifi", 2.0, 5.0)]
    assert [(mark.t_s, mark.text) for mark in gone.marks] == [
        (2.0, "carrier-down"),
        (5.0, "carrier-up"),
    ]
    capacity = gone.panels[0]
    assert (capacity.series[0].times_s, capacity.series[0].values) == ([0, 2, 5], [60, 0, 60])
    assert [panel.title for panel in gone.panels] == [
        "capacity, downlink",
        "capacity, uplink",
        "round trip",
    ]  # No loss and no signal: no panels of them


def test_a_run_shows_capacity_against_use() -> None:
    states = [(0.0, "wifi", FAST), (2.0, "wifi", replace(FAST, blackout=True))]
    sent = {"wifi": [(1.0, 5_000_000), (2.0, 10_000_000), (3.0, 10_000_000)]}
    plot = plotting.of_run("a run", states, sent, 2.5, BOTH)
    assert plot.end_s == 3.0
    assert plot.outages == [Outage("wifi", 2.0, 3.0)]
    used = plot.panels[0].series[-1]
    assert (used.label, used.times_s, used.values) == ("Wi-Fi used", [0.0, 2.0], [40.0, 0.0])
    assert plot.finishes_s == {"download": 2.5}


def test_a_run_is_drawn_to_the_end_of_its_download() -> None:
    assert plotting.of_run("a run", [(0.0, "wifi", FAST)], {}, 2.5, BOTH).end_s == 2.5


def test_links_that_carry_nothing_are_drawn(tmp_path: Path) -> None:
    plot = plotting.of_run("a run", [(0.0, "wifi", replace(FAST, up=False))], {}, 2.5, BOTH)
    assert [panel.title for panel in plot.panels] == ["capacity, downlink"]
    assert plot.outages == [Outage("wifi", 0.0, 2.5)]
    plot_picture.draw(plot, tmp_path / "plot.png")
    assert "Wi-Fi carries nothing once, 2.500 s in all" in plot_terminal.text(plot, 79)


def test_a_radio_that_sleeps_is_no_outage() -> None:
    asleep = replace(FAST, hold_down=True, hold_up=True, rrc="idle")
    states = [(0.0, "lte", asleep), (1.0, "lte", FAST), (2.0, "lte", replace(FAST, hold_down=True))]
    plot = plotting.of_run("a run", states, {}, 3.0, BOTH)
    assert [series.values for series in plot.panels[0].series] == [[80.0, 0.0]]
    assert [series.values for series in plot.panels[1].series] == [[20.0]]
    assert plot.outages == [Outage("lte", 2.0, 3.0)]


VALUES = st.lists(st.floats(0, 100), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 40))
def test_an_envelope_loses_no_extreme(values: list[float], columns: int) -> None:
    series = Series("wifi", "Wi-Fi", [number * 0.1 for number in range(len(values))], values)
    times, drawn = plotting.envelope(series, len(values) * 0.1, columns)
    assert (min(drawn), max(drawn)) == (min(values), max(values))
    assert len(times) == len(drawn) <= 2 * columns
    assert times == sorted(times)


def test_an_envelope_keeps_gaps() -> None:
    series = Series("wifi", "Wi-Fi", [0.0, 1.0, 2.0], [5.0, math.nan, 7.0])
    times, drawn = plotting.envelope(series, 4.0, 4)
    assert [t for t, value in zip(times, drawn, strict=True) if math.isnan(value)] == []
    _, finer = plotting.envelope(series, 4.0, 8)
    assert any(math.isnan(value) for value in finer)


def test_the_terminal_drawing_fits_and_is_plain(gone: Plot) -> None:
    drawn = plot_terminal.text(gone, 79)
    assert all(len(line) <= 79 for line in drawn.splitlines())
    assert "\x1b" not in drawn
    assert "w" in drawn.split("┌")[1].split("└")[0]
    assert "10.246 s  both links finished" in drawn


def test_the_same_plot_is_the_same_picture(gone: Plot, tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        plot_picture.draw(gone, tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one == two
    assert one.startswith(b"\x89PNG")


@given(st.lists(st.tuples(st.floats(0, 10), st.sampled_from(["wifi", "lte"])), max_size=30))
def test_no_text_of_a_picture_covers_another(marks: list[tuple[float, str]]) -> None:
    plot = plotting.of_run("", [(0.0, link, FAST) for link in BOTH], {}, 10.0, BOTH)
    found = [plotting.Mark(t_s, link, "carrier-down") for t_s, link in sorted(marks)]
    finishes = {"both links": 9.0, "LTE alone": 9.1}
    layers = plot_picture._marks(replace(plot, marks=found, finishes_s=finishes))
    spans: dict[int, list[tuple[float, float]]] = {}
    for one in (one for one in layers if "text" in one["encoding"] and "stroke" not in one["mark"]):
        at = 64 * one["data"]["values"][0]["t"]
        width = 4.5 * len(one["encoding"]["text"]["value"])
        left = at - width if one["mark"]["align"] == "right" else at
        spans.setdefault(one["mark"]["y"], []).append((left, left + width))
    for row in map(sorted, spans.values()):
        assert all(end < begin for (_, end), (begin, _) in pairwise(row))
    assert len(spans) >= 2 + bool(marks)


def test_a_picture_tells_outages_events_and_finishes(gone: Plot, tmp_path: Path) -> None:
    first, *rest = plot_picture.spec(gone)["vconcat"]
    assert len(rest) == len(gone.panels) - 1
    for panel in (first, *rest):
        (outage,) = (one for one in panel["layer"] if one["mark"]["type"] == "rect")
        assert outage["data"]["values"] == [{"t": 2.0, "e": 5.0}]
    plot_picture.draw(gone, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text()
    assert drawn.startswith("<svg")
    for text in (gone.title, "Wi-Fi: carrier-down", "both links: 10.25 s", "Wi-Fi up", "seconds"):
        assert f">{text}</text>" in drawn


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[Any]) -> None:
    assert cli.main(["plot", "wifi-outage", "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert drawn["finishes_s"]["both links"] > 10
    picture = tmp_path / "plot.png"
    assert cli.main(["plot", "wifi-outage", "--no-terminal", "-o", str(picture)]) == 0
    assert capsys.readouterr().out == ""
    assert picture.stat().st_size > 10_000
    assert cli.main(["plot", "wifi-outag"]) == 2
    assert "did you mean 'wifi-outage'" in capsys.readouterr().err
    assert cli.main(["plot", "wifi-outage", "--seconds", "0"]) == 2
    assert cli.main(["plot", "wifi-gone", "--no-terminal", "-o", str(tmp_path / "no" / "x")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_three_links_are_told_apart(tmp_path: Path) -> None:
    kinds = {**BOTH, "lte2": LTE}
    states = [(0.0, link, FAST) for link in kinds]
    states.append((1.0, "lte2", replace(FAST, blackout=True)))
    plot = plotting.of_run("a run", states, {}, 2.5, kinds)
    drawn = plot_terminal.text(plot, 79)
    assert "drawn as: w Wi-Fi, l LTE, t lte2\n" in drawn
    assert "lte2 carries nothing once, 1.500 s in all" in drawn
    plot_picture.draw(plot, tmp_path / "plot.png")
    with pytest.raises(ValueError, match="of what kind is the link 'lte2'"):
        plotting.of_run("a run", states, {}, 2.5, BOTH)


@given(
    st.lists(
        st.from_regex(r"[a-zA-Z][a-z]{0,3}", fullmatch=True), min_size=1, max_size=8, unique=True
    )
)
@example(names=[*"ABCDEFXx"])
def test_without_colour_each_series_has_a_character_and_the_legend_says_which(
    names: list[str],
) -> None:
    kinds = dict.fromkeys(names, WIFI)
    state = LinkState(
        up=True,
        down_rate_bps=10**7,
        up_rate_bps=10**6,
        delay_s=0.01,
        jitter_s=0,
        loss_ratio=0,
        loss_burst_packets=1,
    )
    states = [(0.0, name, state) for name in names]
    sent = {name: [(1.0, 10**6), (2.0, 2 * 10**6)] for name in names}
    drawn = plot_terminal.text(plotting.of_run("", states, sent, 2.0, kinds), 79)
    (legend,) = [one for one in drawn.splitlines() if one.startswith("drawn as: ")]
    said = dict(one.split(" ", 1)[::-1] for one in legend.removeprefix("drawn as: ").split(", "))
    titles = {link_title(name) for name in names}
    assert set(said) == titles | {f"{one} used" for one in titles}
    assert len(set(said.values())) == 2 * len(names)


def test_a_scenario_of_one_link_finishes_once() -> None:
    one = scenario.find("wifi-gone")
    alone = replace(one, links={"lte": one.links["lte"]}, events=())
    assert list(plotting.of_scenario(alone, 1).finishes_s) == ["LTE alone"]
