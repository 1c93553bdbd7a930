"""Tests figures by arithmetic against hand-made ones, for links of constant rates."""

import pytest

from linklab import scenario
from linklab.core.frames import goodput_ratio
from linklab.energy import library
from linklab.report.arithmetic import Arithmetic, links_of
from linklab.report.statement import RunGroup
from linklab.runs.loaded_runs import LoadedRun
from linklab.scenario import Scenario

TEXT = """\
name: two
payload: {size: 30 MB}
links:
  wifi: {down: 8 Mbit/s, up: 8 Mbit/s, rtt: 0 ms}
  lte: {down: 4 Mbit/s, up: 4 Mbit/s, rtt: 0 ms}
"""


def made(text: str = TEXT) -> Scenario:
    return scenario.parse(text, "two.yaml", path=None, stem="two")


def run(client: str, text: str = TEXT, first_s: float = 0.0) -> LoadedRun:
    rules = Arithmetic(lambda _: made(text), lambda _: library.get("galaxy-s2-hd-lte"))
    (found,) = rules.runs(RunGroup("two", client, first_s), [1])
    return found


RATIO = goodput_ratio(made().links["wifi"].families)


@pytest.mark.parametrize(
    ("client", "download_s", "ends_s"),
    [
        ("single-wifi", 30, {"wifi": 30, "lte": None}),
        ("curl-lte", 60, {"wifi": None, "lte": 60}),
        ("alg3", 20, {"wifi": 20, "lte": 20}),
        ("mptcp-2016-lte", 20, {"wifi": 20, "lte": 20}),
        ("mptcp-backup", 30, {"wifi": 30, "lte": None}),
        ("naive", 30, {"wifi": 15, "lte": 30}),
    ],
)
def test_time_is_bytes_by_rate(
    client: str, download_s: float, ends_s: dict[str, float | None]
) -> None:
    figures = run(client).figures
    assert figures is not None
    assert figures.download_s * RATIO == pytest.approx(download_s, rel=1e-6)
    assert figures.goodput_bps == pytest.approx(240e6 / figures.download_s)
    assert figures.efficiency == pytest.approx(20 / download_s, rel=1e-6)
    assert {
        name: None if one.finish_s is None else pytest.approx(one.finish_s * RATIO, rel=1e-6)
        for name, one in figures.links.items()
    } == ends_s


def test_energy_is_power_by_time() -> None:
    """A link draws what it draws active, and for each megabit, then its tail."""
    found = run("single-wifi")
    assert found.figures is not None and found.figures.energy is not None
    energy = found.figures.energy
    wifi = library.get("galaxy-s2-hd-lte").links["wifi"]
    megabits = 240 / RATIO
    expected_mj = wifi.active_mw * found.figures.download_s + wifi.down_mj_per_mbit * megabits
    assert energy.main_j == pytest.approx(expected_mj / 1000, rel=0.01)
    assert energy.bursts_s == pytest.approx(found.figures.download_s)


def test_the_first_seconds_carry_what_fits_into_them() -> None:
    found = run("alg3", first_s=10.0)
    assert found.figures is not None and found.first_s == 10.0
    assert found.figures.carried_bytes == pytest.approx(12e6 * 10 / 8 * RATIO, rel=1e-6)
    assert found.figures.energy is not None and found.figures.energy.tail_j == 0


@pytest.mark.parametrize(("film", "film_s", "waits"), [("60 s", 60, 0), ("10 s", 10, 1)])
def test_a_film_plays_as_long_as_it_lasts_or_as_its_bytes_take(
    film: str, film_s: float, waits: int
) -> None:
    player = f"workload: {{player: {{length: {film}, start: 300 kB, low: 300 kB, high: 20 MB}}}}\n"
    found = run("gb-p", TEXT + player)
    assert found.figures is not None and found.figures.workload is not None
    start_s = 0.2 / RATIO
    expected_s = 20 / RATIO if waits else start_s + film_s
    assert found.figures.workload["playback_s"] == pytest.approx(expected_s, rel=1e-6)
    assert found.figures.workload["interruptions"] == waits


def test_links_that_never_carry_it_all_give_no_figures() -> None:
    rules = Arithmetic(lambda _: made(TEXT.replace("30 MB", "10 GB")), lambda _: None)
    assert rules.runs(RunGroup("two", "single-lte"), [1]) == []


def test_who_decides_by_energy_uses_the_links_of_least_power() -> None:
    """eMPTCP 4.2: good Wi-Fi alone, bad Wi-Fi with LTE."""
    rules = Arithmetic(scenario.find, lambda _: library.get("galaxy-s3"))
    for name, used in (("emptcp-static-good", {"wifi"}), ("emptcp-16mb-bad-good", {"wifi", "lte"})):
        assert links_of("emptcp-http", scenario.find(name)) is None
        (found,) = rules.runs(RunGroup(name, "emptcp-http"), [1])
        assert found.figures is not None
        assert {link for link, one in found.figures.links.items() if one.bytes} <= used
