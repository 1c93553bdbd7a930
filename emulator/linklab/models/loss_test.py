import math
from itertools import groupby
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.models.loss import Losses, bursts_of, combined, gemodel, max_ratio

BURSTS = st.floats(1, 1000)


@st.composite
def possible(draw: st.DrawFn) -> Losses:
    burst = draw(BURSTS)
    return Losses(draw(st.floats(1e-9, max_ratio(burst))), burst)


@given(possible())
def test_ratio_and_burst_are_those_of_the_chain(wanted: Losses) -> None:
    p, r = gemodel(*wanted)
    assert 0 < p <= 1
    assert 0 < r <= 1
    assert (p / (p + r), 1 / r) == pytest.approx(wanted, rel=1e-9)


def test_netem_needs_its_model_where_some_packets_are_lost_in_bursts() -> None:
    for ratio, burst in ((0.01, 1.5), (0.5, 2), (1e-6, 1000)):
        assert bursts_of(ratio, burst) == gemodel(ratio, burst)
    for ratio, burst in ((0, 2), (1, 2), (0.01, 1)):
        assert bursts_of(ratio, burst) is None
    assert gemodel(0, 2) == (0, 0.5)


@pytest.mark.parametrize(("ratio", "burst"), [(0.001, 2), (0.01, 2), (0.05, 10), (0.5, 1)])
def test_a_chain_of_packets_loses_as_stated(ratio: float, burst: float) -> None:
    """Steps through the states as sch_netem's loss_gilb_ell does; 99 % confidence intervals."""
    model = gemodel(ratio, burst)
    random = Random(1)
    packets = 1_000_000
    bad, lost = False, []
    for _ in range(packets):
        lost.append(bad)
        bad = random.random() >= model.r if bad else random.random() < model.p
    lengths = [len(list(run)) for is_lost, run in groupby(lost) if is_lost]
    mean_burst = sum(lengths) / len(lengths)
    sd_of_burst = math.sqrt(1 - model.r) / model.r
    assert abs(mean_burst - burst) <= 2.576 * sd_of_burst / math.sqrt(len(lengths)) + 1e-9
    # Variance of a sum over the chain: correlations fall by 1-p-r per packet.
    memory = 1 - model.p - model.r
    sd_of_sum = math.sqrt(packets * ratio * (1 - ratio) * (1 + memory) / (1 - memory))
    assert abs(sum(lost) - packets * ratio) <= 2.576 * sd_of_sum + 1


@pytest.mark.parametrize(("ratio", "burst"), [(0.67, 2), (0.51, 1), (1, 1000), (-0.1, 2)])
def test_impossible_losses(ratio: float, burst: float) -> None:
    with pytest.raises(ValueError, match=r"allowed: 0 to 0\.\d+"):
        gemodel(ratio, burst)


@given(possible(), possible())
def test_combined_losses_are_possible_and_more(first: Losses, second: Losses) -> None:
    both = combined(first, second)
    kept = (1 - first.ratio) * (1 - second.ratio)
    assert both.ratio == pytest.approx(1 - kept)
    assert both.ratio >= max(first.ratio, second.ratio) - 1e-12
    assert both == pytest.approx(combined(second, first))
    if both.ratio < 1:
        gemodel(*both)


@given(possible())
def test_nothing_changes_losses_that_are_alone(one: Losses) -> None:
    nothing = Losses(0.0, 7.0)
    assert combined(one, nothing) == combined(nothing, one) == one


def test_combined_losses_at_their_bounds() -> None:
    assert combined(Losses(1.0, 5), Losses(0.1, 2)) == (1.0, 5)
    assert tuple(combined(Losses(0.1, 1), Losses(0.1, 1))) == pytest.approx((0.19, 1))


def test_rare_bursts_of_two_kinds() -> None:
    """As many bursts of 2 as of 10 packets: 6 on average."""
    both = combined(Losses(0.0002, 2), Losses(0.001, 10))
    assert both.burst_packets == pytest.approx(6, rel=0.001)
