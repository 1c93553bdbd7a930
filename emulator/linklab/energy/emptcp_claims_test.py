"""Tests which figures of eMPTCP contradict each other on the phone of its table 2.

They do so for all rates that the paper does not state, and whatever the phone draws of the power
that belongs to no link (`profiles/energy/galaxy-s3.yaml`). It draws that for the same time with
eMPTCP as with MPTCP. Links carry all that they can, without round trips, slow starts or blocked
windows.
`profiles/publications/emptcp.yaml` marks the contradicting statements as *does not follow*.
"""

import itertools
import math
from dataclasses import replace

import pytest

from linklab.core.link_kinds import LTE, WIFI
from linklab.energy import library
from linklab.energy.information_base import power_mw, thresholds

S3 = library.get("galaxy-s3")

COMMON_MW = S3.phone_mw + S3.shared_mw

PHONES_MW = (0.0, S3.phone_mw, COMMON_MW)
"""What the phone may draw of the power that belongs to no link."""

PHASE_S = 40.0

RATES = [n * 0.5e6 for n in range(1, 41)]


def radios_w(wifi_bps: float, lte_bps: float, phone_mw: float) -> float:
    """What the radios draw, with what they share."""
    rates = {WIFI: wifi_bps} | ({LTE: lte_bps} if lte_bps else {})
    return power_mw(replace(S3, phone_mw=0.0, shared_mw=COMMON_MW - phone_mw), rates) / 1000


def uses_lte(wifi_bps: float, lte_bps: float) -> bool:
    return wifi_bps < thresholds(S3, lte_bps).wifi_only_from_bps


def on_off(
    on_bps: float, off_bps: float, lte_bps: float, phone_mw: float
) -> tuple[float, float, float]:
    """eMPTCP's energy per byte by MPTCP's, without promotions; its time by that of Wi-Fi alone, and by
    MPTCP's: over phases of 40 s each on average, as long as which LTE's tail seldom is (4.3)."""
    mptcp = [(wifi, lte_bps) for wifi in (on_bps, off_bps)]
    emptcp = [(wifi, lte_bps if uses_lte(wifi, lte_bps) else 0.0) for wifi in (on_bps, off_bps)]
    (all_j, all_bits), (own_j, own_bits) = (
        (sum(PHASE_S * radios_w(*one, phone_mw) for one in phases), PHASE_S * sum(map(sum, phases)))
        for phases in (mptcp, emptcp)
    )
    (tail,) = S3.link(LTE).tail
    if emptcp[0] != mptcp[0]:
        own_j += tail.power_mw / 1000 * PHASE_S * (1 - math.exp(-tail.time_s / PHASE_S))
    phone_j = phone_mw / 1000 * 2 * PHASE_S / own_bits  # Per bit; eMPTCP takes longer.
    energy = (own_j / own_bits + phone_j) / (all_j / all_bits + phone_j)
    return energy, PHASE_S * (on_bps + off_bps) / own_bits, all_bits / own_bits


@pytest.mark.parametrize("phone_mw", PHONES_MW)
def test_on_and_off_half_of_wi_fi_s_time_and_8_percent_saved_do_not_go_together(
    phone_mw: float,
) -> None:
    """4.3: 92 % of MPTCP's energy, 50 % of the time of Wi-Fi alone. In bad phases, where both cost
    most per byte, eMPTCP carries a larger part of the file, because MPTCP carries more in good ones.
    And each rest of LTE begins with its tail."""
    lte = [rate for rate in RATES if rate >= 2e6]
    cases = itertools.product((10e6, 12e6, 15e6, 20e6), (0.1e6, 0.5e6, 1e6), lte)
    found = [on_off(*case, phone_mw) for case in cases]
    fitting = [energy for energy, of_wifi, _ in found if 0.4 <= of_wifi <= 0.6]
    assert len(fitting) > 50
    assert min(fitting) > 0.98
    _, *times = on_off(10e6, 1e6, 8e6, phone_mw)
    assert times == pytest.approx([0.579, 1.421], abs=0.001)


@pytest.mark.parametrize("phone_mw", PHONES_MW)
def test_bad_and_bad_six_times_wi_fi_s_time_and_a_third_saved_do_not_go_together(
    phone_mw: float,
) -> None:
    """5.3: Wi-Fi alone takes about 6 times as long as MPTCP, and eMPTCP saves 33 %. Where LTE is so
    much faster than Wi-Fi, eMPTCP uses both, later; before, each byte costs more."""
    size_bits, delay_s = 16e6 * 8, 3.0
    (tail,) = S3.link(LTE).tail
    savings = []
    for wifi, lte in itertools.product([n * 0.1e6 for n in range(1, 81)], repeat=2):
        if 5 <= (wifi + lte) / wifi <= 7:
            assert uses_lte(wifi, lte)
            both_w, rate_bps = radios_w(wifi, lte, phone_mw), wifi + lte
            later_s = (size_bits - delay_s * wifi) / rate_bps
            alike_j = tail.power_mw / 1000 * tail.time_s
            alike_j += phone_mw / 1000 * (delay_s + later_s + tail.time_s)
            own_j = delay_s * radios_w(wifi, 0, phone_mw) + both_w * later_s
            savings.append((own_j + alike_j) / (both_w * size_bits / rate_bps + alike_j))
    assert len(savings) > 50
    assert min(savings) > 0.98
