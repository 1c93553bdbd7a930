import math

import pytest
from linklab import scenario
from linklab.links import oracle

from bench.random_scenarios import LONGEST_S, draw

DRAWN = [draw(1, number) for number in range(40)]


@pytest.mark.parametrize(("name", "text"), DRAWN, ids=[name for name, _ in DRAWN])
def test_each_is_a_scenario_that_ends(name: str, text: str) -> None:
    drawn = scenario.parse(text)
    assert drawn.name == name
    assert 256_000 <= drawn.payload.size_bytes <= 500_000_000
    for link in drawn.links.values():
        assert 0.9e6 < link.down_rate_bps < 301e6
        assert 0.0049 < link.rtt_s < 0.301
        assert 0 <= link.loss_ratio <= 0.02
    least_s = oracle.oracle_s(drawn)
    assert math.isfinite(least_s)
    assert least_s < 10 * LONGEST_S


def test_they_differ_and_are_always_the_same() -> None:
    assert len({text for _, text in DRAWN}) == 40
    assert draw(1, 7) == DRAWN[7]
    assert draw(2, 7)[1] != DRAWN[7][1]
    texts = "".join(text for _, text in DRAWN)
    for word in ("carrier: down", "outage: true", "loss: 0.000 %"):
        assert word in texts
