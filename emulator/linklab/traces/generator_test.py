import math
import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.traces.generator import RateProcess, TraceRecipe, _poisson, _Wandering, generate
from linklab.traces.statistics import of_downlink

MBIT = 10**6
SPROUT = RateProcess(20 * MBIT, 40 * MBIT)
STILL = RateProcess(20 * MBIT, 40 * MBIT, volatility=0.0)


def recipe(down: RateProcess, seed: int = 1, duration_s: int = 600) -> TraceRecipe:
    return TraceRecipe(
        seed=seed, duration_s=duration_s, down=down, up=RateProcess(5 * MBIT, 10 * MBIT)
    )


def test_a_reflected_brownian_rate_visits_all_rates_equally() -> None:
    found = [of_downlink(generate(recipe(SPROUT, seed))) for seed in range(1, 3)]
    assert statistics.mean(one.cv or 0 for one in found) == pytest.approx(1 / math.sqrt(3), rel=0.1)
    # The slowest mode of a Brownian motion between two walls dies out by σ²π²/2R² per second.
    slowest = math.exp(-(0.2**2) * math.pi**2 / 2)
    assert statistics.mean(one.autocorrelation_1s or 0 for one in found) == pytest.approx(
        slowest, abs=0.06
    )


@given(st.floats(0, 1), st.lists(st.floats(-8, 8), min_size=1, max_size=30))
def test_walls_reflect_each_step(begin: float, steps: list[float]) -> None:
    """The judge folds the line at both walls: its distance from the nearest even multiple of the peak."""
    walker = _Wandering(replace(SPROUT, mean_bps=round(begin * 40 * MBIT)), random.Random(1))
    peak = 40 * MBIT / (1514 * 8)
    rate = round(begin * 40 * MBIT) / (1514 * 8)
    for step in steps:
        walker.move(step)
        unfolded = rate + step * 0.2 * peak * math.sqrt(0.02)
        rate = abs(unfolded - 2 * peak * round(unfolded / (2 * peak)))
        assert walker._rate == pytest.approx(rate, abs=1e-6 * peak)


def test_a_rate_that_returns_is_an_ornstein_uhlenbeck_process() -> None:
    reversion, cv = 0.5, 0.15
    volatility = cv * math.sqrt(2 * reversion) / 2
    channel = RateProcess(80 * MBIT, 160 * MBIT, volatility, reversion)
    trace = [sample for seed in range(1, 3) for sample in generate(recipe(channel, seed))]
    rates = [sample.down_bps or 0 for sample in trace]
    mean = statistics.mean(rates)
    assert mean == pytest.approx(80 * MBIT, rel=0.02)
    assert statistics.pstdev(rates) / mean == pytest.approx(cv, rel=0.1)
    lagged = statistics.correlation(rates[:-10], rates[10:])
    assert lagged == pytest.approx(math.exp(-reversion), abs=0.06)


def test_outages_strike_both_directions_and_last_a_second_on_average() -> None:
    down = replace(SPROUT, outage_share=0.3, escape_per_s=1.0)
    trace = list(generate(replace(recipe(down, duration_s=1200), up=STILL)))
    dark = "".join("0" if s.up_bps == 0 else "1" for s in trace)
    lengths = [len(run) / 10 for run in dark.split("1") if run]
    assert all(s.down_bps == 0 for s in trace if s.up_bps == 0)
    # Those shorter than the two samples that they begin and end in do not show.
    long = [length - 0.5 for length in lengths if length >= 0.5]
    assert len(long) > 60
    assert statistics.mean(long) == pytest.approx(1.0, rel=0.2)


def test_directions_are_coupled_as_told() -> None:
    def correlation(coupling: float) -> float:
        channel = RateProcess(60 * MBIT, 120 * MBIT, 0.1, 0.5)
        made = TraceRecipe(1, 200, channel, channel, coupling)
        trace = list(generate(made))
        downs, ups = [s.down_bps or 0 for s in trace], [s.up_bps or 0 for s in trace]
        return statistics.correlation(downs, ups)

    assert abs(correlation(0.0)) < 0.3
    assert correlation(0.5) == pytest.approx(0.5, abs=0.2)
    assert correlation(1.0) > 0.9


channels = st.builds(
    lambda mean, room, **rest: RateProcess(mean_bps=mean, peak_bps=mean + room, **rest),
    mean=st.integers(1, 50 * MBIT),
    room=st.integers(0, 50 * MBIT),
    volatility=st.floats(0, 2),
    reversion_per_s=st.floats(0, 100),
    outage_share=st.floats(0, 1),
    escape_per_s=st.floats(0.01, 100),
)
recipes = st.builds(
    TraceRecipe,
    seed=st.integers(0, 2**63),
    duration_s=st.integers(1, 5),
    down=channels,
    up=channels,
    coupling=st.floats(0, 1),
)


@given(recipes)
def test_any_recipe_makes_whole_packets_in_samples_of_100_ms(made: TraceRecipe) -> None:
    trace = list(generate(made))
    assert len(trace) == made.duration_s * 10
    for sample in trace:
        assert sample.length_ns == 100_000_000
        for rate in (sample.down_bps, sample.up_bps):
            assert rate is not None
            assert rate >= 0
            assert rate % (1514 * 8 * 10) == 0


@given(recipes)
def test_the_same_seed_makes_the_same_trace(made: TraceRecipe) -> None:
    assert list(generate(made)) == list(generate(made))


def test_another_seed_makes_another_trace_and_a_longer_one_begins_the_same() -> None:
    short = list(generate(recipe(SPROUT, duration_s=10)))
    assert short != list(generate(recipe(SPROUT, seed=2, duration_s=10)))
    assert short == list(generate(recipe(SPROUT, duration_s=20)))[:100]


@pytest.mark.parametrize("mean", [0.5, 30.0, 1200.0])
def test_poisson_numbers_have_their_mean_and_variance(mean: float) -> None:
    randomness = random.Random(1)
    drawn = [_poisson(mean, randomness) for _ in range(4000)]
    assert statistics.mean(drawn) == pytest.approx(mean, abs=4 * math.sqrt(mean / 4000))
    assert statistics.variance(drawn) == pytest.approx(mean, rel=0.1)
    assert _poisson(0.0, randomness) == 0


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (recipe(RateProcess(0, 1)), "a mean of 0 bit/s below a peak of 1 bit/s; allowed: 0 < mean"),
        (recipe(RateProcess(3, 2)), "a mean of 3 bit/s below a peak of 2 bit/s"),
        (recipe(RateProcess(1, 10**11)), "allowed: 0 < mean <= peak <= 10000000000"),
        (recipe(replace(SPROUT, volatility=-1.0)), "volatility, reversion and escape are negative"),
        (recipe(replace(SPROUT, escape_per_s=0.0)), "escape more than 0"),
        (recipe(replace(SPROUT, outage_share=1.1)), "an outage share of 1.1; allowed: 0 to 1"),
        (replace(recipe(SPROUT), coupling=2.0), "a coupling of 2.0; allowed: 0 to 1"),
        (recipe(SPROUT, duration_s=0), "a duration of 0 s; allowed: 1 s to 1000000 s"),
    ],
)
def test_recipes_that_cannot_be_followed_are_refused(made: TraceRecipe, message: str) -> None:
    with pytest.raises(ValueError, match="allowed: ") as caught:
        next(generate(made))
    assert message in str(caught.value)
