from pathlib import Path

import pytest
from msgspec import UNSET

from linklab import scenario
from linklab.core.impairments import Impairments
from linklab.links.held import held_bytes
from linklab.links.stack import models
from linklab.models import impairments
from linklab.models.events import Event
from linklab.scenario import Scenario, ScenarioError

TEXT = """\
name: x
payload: {size: 1 MB}
links:
  wifi:
    down: 80 Mbit/s
    up: 20 Mbit/s
    rtt: 20 ms
    impair_up: {loss: 2 %, loss_burst: 3, delay: 30 ms, jitter: 4 ms, distribution: pareto}
  lte: {down: 50 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
events:
  - {at: 1 s, link: wifi, impair_up: {loss: 5 %}, for: 2 s}
  - {at: 2 s, link: lte, impair_down: {duplicate: 1 %}}
"""


def with_wifi(wifi: str, events: str = "") -> str:
    return (
        "name: x\npayload: {size: 1 MB}\nlinks:\n"
        f"  wifi: {{down: 8 Mbit/s, up: 1 Mbit/s, rtt: 10 ms, {wifi}}}\n{events}"
    )


def test_impairments_are_of_one_direction_and_events_change_them() -> None:
    read = scenario.parse(TEXT)
    own = Impairments(0.02, 3.0, 0.03, 0.004, "pareto")
    assert read.links["wifi"].impair_up == own
    assert read.links["wifi"].impair_down is UNSET
    wifi = models(read, 1)["wifi"]
    assert wifi.at(0.0).impairments("up") == own
    during = wifi.at(1.0)
    assert during.impairments("up") == Impairments(0.05, 3.0, 0.03, 0.004, "pareto")
    assert (during.lost_ratio("up"), during.lost_ratio("down")) == (0.05, 0.0)
    assert during.rtt_s == pytest.approx(0.05)
    assert wifi.at(3.0).impairments("up") == own
    assert read.impaired_links == {"wifi", "lte"}
    assert scenario.parse(scenario.to_yaml(read)) == read


def test_a_scenario_without_them_is_written_as_ever() -> None:
    plain = scenario.find("static-80-50")
    assert plain.impaired_links == frozenset()
    assert "impair" not in scenario.to_yaml(plain)
    assert "distributions" not in scenario.to_yaml(plain)


def test_an_event_is_called_by_its_strongest_change() -> None:
    change = Impairments(loss_ratio=0.1)
    assert Event("wifi", impair_down=change).kind == "impair"
    assert Event("wifi", impair_up=change, rtt_s=0.1).kind == "delay"
    assert Event("wifi", rtt_s=0.1).kind == "delay"


def test_delayed_packets_need_memory() -> None:
    more = scenario.parse(with_wifi("impair_up: {delay: 1 s, jitter: 0.1 s}"))
    less = scenario.parse(with_wifi("jitter: 0 s"))
    assert held_bytes(more) - held_bytes(less) == pytest.approx(9e6 / 8 * 1.4)


def test_every_key_is_written_with_its_unit() -> None:
    figures = (0.1, 2.0, 0.1, 0.01, "normal", False, 0.1, 0.2, 0.3)
    faults = (2.0, 5_000, 6_000, 700, 0.02, 443)
    every = Impairments(*figures, 1400, True, 1_500_000, 7_000_000, True, 30.0, 3600.0, *faults)
    written = impairments.TABLE.write(every)
    assert list(written) == [row.key for row in impairments.TABLE.flat]
    assert (written["delay"], written["reorder"]) == ("100 ms", "10 %")
    assert (written["mtu"], written["police"]) == ("1400 B", "1.5 Mbit/s")
    assert (written["reset_after"], written["fault_port"]) == ("2 s", "443")
    assert impairments.TABLE.write(Impairments(police_bps=0)) == {"police": "none"}


@pytest.mark.parametrize(
    ("wifi", "said"),
    [
        ("impair_up: {loss: 101 %}", ".impair_up.loss: '101 %' is out of"),
        ("impair_up: {loss: 2}", ".impair_up.loss: '2' "),
        ("impair_up: {delay: 11 s}", ".impair_up.delay: '11 s' is out of "),
        ("impair_down: {}", ".impair_down: impairs nothing; allowed: any of"),
        ("impair_down: 3 %", ".impair_down: must be a mapping"),
        ("impair: {}", ": unknown key 'impair'"),
        ("impair_up: {loss: 90 %, loss_burst: 2}", ".impair_up.loss: a loss of 0.9 with bursts"),
        ("impair_up: {reorder: 1 %}", ".impair_up.reorder: needs a delay, which the packets skip"),
        ("impair_up: {jitter: 1 ms}", ".impair_up.jitter: a jitter of 1 ms around no delay"),
        ("impair_up: {delay: 1 s, jitter: 0.3 s}", ".impair_up.jitter: …allowed: 0 s to 250"),
        ("impair_up: {delay: 1 s, jitter: 1 ms, distribution: paretto}", ".impair_up.distribution"),
        ("impair_down: {nat_udp: 30 s}", ".impair_down.nat_udp: …allowed: in im"),
        ("impair_up: {mtu: 575 B}", ".impair_up.mtu: '575 B' is out of range"),
        ("impair_up: {black_hole: true}", ".impair_up.black_hole: needs a size above which"),
        ("impair_up: {police: 1 Mbit/s}", ".impair_up.police: …needed: police_b"),
        ("impair_up: {police: 0 Mbit/s, police_burst: 1 MB}", ".impair_up.police: '0 Mbit/s' is"),
        ("impair_up: {police: 100 kbit/s, police_burst: 7 MB}", ".impair_up.police_burst: 7 MB"),
    ],
)
def test_what_does_not_fit_is_refused_with_line_and_field(wifi: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.parse(with_wifi(wifi), "x.yaml")
    place, _, allowed = said.partition("…")
    assert str(caught.value).startswith(f"x.yaml:4: links.wifi{place}")
    assert allowed in str(caught.value)


def test_an_event_is_checked_with_what_is_in_force() -> None:
    wifi = "impair_up: {loss: 60 %, loss_burst: 2}"
    events = "events:\n- {at: 1 s, link: wifi, impair_up: {loss: 70 %}}\n"
    with pytest.raises(ScenarioError, match=r"x.yaml:6: events\[0\].impair_up.loss: a loss of 0.7"):
        scenario.parse(with_wifi(wifi, events), "x.yaml")
    fits = "events:\n- {at: 1 s, link: wifi, impair_up: {loss: 70 %, loss_burst: 5}}\n"
    scenario.parse(with_wifi(wifi, fits))


def distributed(tmp_path: Path, content: str, name: str = "cell") -> Scenario:
    (tmp_path / "cell.dist").write_text(content)
    file = tmp_path / "x.yaml"
    file.write_text(
        f"distributions:\n  {name}: ./cell.dist\n"
        + with_wifi(f"impair_up: {{delay: 9 ms, jitter: 1 ms, distribution: {name}}}")
    )
    return scenario.load(file)


def test_a_scenario_may_have_a_table_of_its_own(tmp_path: Path) -> None:
    read = distributed(tmp_path, "-8192 8192\n")
    assert read.delay_tables["cell"].entries == (-8192, 8192)
    assert read.distributions["cell"].file == tmp_path / "cell.dist"
    assert read.links["wifi"].impair_up == Impairments(
        delay_s=0.009, jitter_s=0.001, distribution="cell"
    )


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("1 a", "cell", "x.yaml:2: distributions.cell: ./cell.dist:1: 'a' is no entry of a tab"),
        ("1", "pareto", "x.yaml:2: distributions.pareto: is a distribution without a file"),
        ("1", "2x", "x.yaml:2: distributions: '2x' is no name of a distribution; allowed"),
        ("1 " * 200_000, "cell", "x.yaml:2: distributions.cell: ./cell.dist: is too large"),
    ],
)
def test_a_table_that_is_none_is_refused(
    tmp_path: Path, content: str, name: str, said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        distributed(tmp_path, content, name)
    assert said in str(caught.value)


def test_a_table_that_is_missing_is_refused() -> None:
    text = "distributions: {cell: ./none.dist}\n" + with_wifi("jitter: 0 s")
    with pytest.raises(ScenarioError, match=r"x.yaml:1: distributions.cell: ./none.dist: cannot"):
        scenario.parse(text, "x.yaml")
