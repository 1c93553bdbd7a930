import math
import statistics
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.on_off import OnOff, OnOffSettings

BASE = LinkState(True, 12_000_000, 5_000_000, 0.01, 0.0, 0.0)
EMPTCP = OnOffSettings(1_000_000)
SETTINGS = st.builds(
    OnOffSettings, st.integers(1_000, 20_000_000), st.floats(0.1, 100), st.floats(0.1, 100)
)


def history(settings: OnOffSettings, seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    return layer_test.history(OnOff(settings, Random(seed)), BASE, until_s)


@given(SETTINGS, st.integers())
def test_on_it_is_as_below_and_off_it_is_limited(settings: OnOffSettings, seed: int) -> None:
    changes = history(settings, seed, 50)
    limit = settings.off_rate_bps
    off = (min(BASE.down_rate_bps, limit), min(BASE.up_rate_bps, limit))
    for (_, before), (_, now) in pairwise(changes):
        if limit < BASE.up_rate_bps:
            assert (before == BASE) != (now == BASE)
    for _, state in changes:
        assert state == BASE or (state.down_rate_bps, state.up_rate_bps) == off


@pytest.mark.parametrize("settings", [EMPTCP, OnOffSettings(1_000_000, 10.0, 30.0)])
def test_times_are_exponential_with_the_stated_means(settings: OnOffSettings) -> None:
    """Mean and standard deviation are the same for an exponential time. 4 sigma."""
    spans = [
        (end - begin, state == BASE)
        for (begin, state), (end, _) in pairwise(history(settings, 3, 100_000))
    ]
    for mean_s, on in ((settings.on_s, True), (settings.off_s, False)):
        lasted = [length for length, was in spans if was == on]
        error_s = 4 * mean_s / math.sqrt(len(lasted))
        assert statistics.mean(lasted) == pytest.approx(mean_s, abs=error_s)
        assert statistics.stdev(lasted) == pytest.approx(mean_s, abs=3 * error_s)


def test_at_the_start_as_often_on_as_ever() -> None:
    settings = OnOffSettings(1_000_000, 10.0, 30.0)
    on = sum(history(settings, seed, 0)[0][1] == BASE for seed in range(3000))
    assert on / 3000 == pytest.approx(1 / 4, abs=4 * math.sqrt(3 / 16 / 3000))
