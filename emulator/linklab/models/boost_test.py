import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.boost import Boost, BoostSettings
from linklab.models.layer import Load

BASE = LinkState(True, 300_000_000, 20_000_000, 0.0075, 0.0, 0.0)
CABLE = BoostSettings(down_peak_bps=600_000_000, burst_bytes=10_000_000)


def carried(
    settings: BoostSettings, until_s: float, idle: tuple[float, float] = (0.0, 0.0)
) -> list[tuple[float, int, float]]:
    """Under full load but in the time `idle`: times, rates from then on, and bytes until then."""
    layer = Boost(settings)
    found, t_s, total = [], 0.0, 0.0
    while t_s < until_s:
        rate = layer.apply(t_s, Load(down_bytes=round(total)), BASE).down_rate_bps
        found.append((t_s, rate, total))
        next_s = min(layer.next_s(), until_s)
        assert next_s > t_s
        if not idle[0] <= t_s < idle[1]:
            total += (next_s - t_s) * rate / 8
        t_s = next_s
    return [*found, (t_s, 0, total)]


def test_the_burst_goes_at_the_peak_and_the_rest_at_the_rate() -> None:
    """10 MB beyond 300 Mbit/s last 267 ms at 600 Mbit/s, in which 20 MB pass."""
    found = carried(CABLE, 2.0)
    ended_s = next(t_s for t_s, rate, _ in found if rate == 300_000_000)
    assert ended_s == pytest.approx(8 * 10e6 / 300e6, rel=1e-3)
    assert found[-1][2] == pytest.approx(10e6 + 2.0 * 300e6 / 8, rel=0.01)


def test_an_idle_link_recovers() -> None:
    """In 200 ms without a load, the bucket gets 7.5 MB."""
    found = carried(CABLE, 2.0, idle=(1.0, 1.2))
    back = [t_s for t_s, rate, _ in found if rate == 600_000_000 and t_s >= 1.2]
    assert back[0] < 1.23
    assert back[-1] == pytest.approx(1.2 + 8 * 7.5e6 / 300e6, abs=0.03)


@given(st.integers(300, 2000), st.integers(1, 1_000_000), st.floats(0.1, 3))
def test_no_more_passes_than_a_token_bucket_lets(mbit: int, kilobytes: int, until_s: float) -> None:
    settings = BoostSettings(down_peak_bps=mbit * 10**6, burst_bytes=kilobytes * 1000)
    found = carried(settings, until_s)
    assert {rate for _, rate, _ in found[:-1]} <= {mbit * 10**6, BASE.down_rate_bps}
    overshoot = 0.02 * mbit * 1e6 / 8
    for t_s, _, total in found:
        assert total <= kilobytes * 1000 + t_s * 300e6 / 8 + overshoot + 1
    assert carried(settings, until_s) == found


def test_the_uplink_has_a_bucket_of_its_own() -> None:
    layer = Boost(BoostSettings(up_peak_bps=30_000_000, burst_bytes=1_000_000), step_s=10.0)
    first = layer.apply(0.0, Load(), BASE)
    assert (first.down_rate_bps, first.up_rate_bps) == (BASE.down_rate_bps, 30_000_000)
    emptied_s = 8 * 1e6 / 10e6
    assert layer.next_s() == pytest.approx(emptied_s)
    sent = Load(down_bytes=10**9, up_bytes=1 + round(30e6 / 8 * emptied_s))
    assert layer.apply(emptied_s, sent, BASE) == BASE
    assert layer.next_s() == 10.0


def test_it_opens_again_with_what_a_step_carries_beyond_the_rate() -> None:
    """20 ms at 300 Mbit/s beyond the rate are 750 kB, which come in 20 ms without a load."""
    layer = Boost(CABLE, step_s=0.02)
    layer.apply(0.0, Load(), BASE)
    emptied_s = 8 * 10e6 / 300e6
    sent = Load(down_bytes=20_000_001)
    rates = [
        layer.apply(emptied_s + idle_s, sent, BASE).down_rate_bps for idle_s in (0, 0.0199, 0.0201)
    ]
    assert rates == [300_000_000, 300_000_000, 600_000_000]
