"""Tests publications' energies over Wi-Fi alone, LTE alone and both, without their algorithms.

The links are those of the profiles, saturated from the start, and the model is that of each
publication's device.
"""

import functools

import pytest

from linklab import scenario
from linklab.core.frames import goodput_ratio
from linklab.core.link_kinds import KINDS
from linklab.energy import library
from linklab.energy.account import account
from linklab.energy.activity import Activity, Counted

ALONE = {"wifi": ("wifi",), "lte": ("lte",), "both": ("wifi", "lte")}


@functools.cache
def joules(name: str, which: str) -> float:
    """The energy of a scenario's payload over these links; the others stay idle."""
    one = scenario.find(name)
    assert one.energy is not None
    used = ALONE[which]
    wire_bits = one.payload.size_bytes * 8 / goodput_ratio()
    end_s = wire_bits / sum(one.links[link].down_rate_bps for link in used)
    activities = {}
    for link, settings in one.links.items():
        carried = round(settings.down_rate_bps * end_s / 8) if link in used else 0
        counted = (Counted(0.0, 0, 0), Counted(end_s, carried, carried // 50))
        activities[link] = Activity(KINDS[link], counted)
    cost = account(
        library.get(one.energy),
        activities,
        start_s=0.0,
        end_s=end_s,
        payload_bytes=one.payload.size_bytes,
    )
    return cost.figures.joules


@pytest.mark.parametrize("name", ["greenbag-energy", "greenbag-stationary-1", "greenbag-mobile"])
def test_greenbag_wifi_costs_least_and_lte_alone_more_than_both(name: str) -> None:
    """Figure 13(b): Wi-Fi alone below all others, both links all the time and LTE alone on top."""
    wifi, lte, both = (joules(name, which) for which in ALONE)
    assert wifi < both < lte


@pytest.mark.parametrize(
    ("name", "ratio"), [("mptcp-wglg", 0.88), ("mptcp-wblg", 1.31), ("mptcp-wblb", 0.85)]
)
def test_mptcp_study_both_links_beside_the_better_one(name: str, ratio: float) -> None:
    """Table 4, SpeedTest: less, more, less."""
    wifi, lte, both = (joules(name, which) for which in ALONE)
    assert both / min(wifi, lte) == pytest.approx(ratio, abs=0.1)
    assert (both < min(wifi, lte)) == (ratio < 1)


def test_mptcp_study_bad_lte_beside_good_wifi_cannot_come_out() -> None:
    """Published: the same. There almost nothing went over LTE; a subflow that carries 5 Mbit/s all the
    time keeps a radio active, and costs a quarter more."""
    assert joules("mptcp-wglb", "both") / joules("mptcp-wglb", "wifi") == pytest.approx(
        1.3, abs=0.1
    )


def test_emptcp_static_links() -> None:
    """Figures 5 and 6: Wi-Fi alone where it is good, both links where it is bad."""
    assert joules("emptcp-static-good", "wifi") < joules("emptcp-static-good", "both")
    assert joules("emptcp-static-bad", "both") < joules("emptcp-static-bad", "wifi")


@pytest.mark.parametrize("lte", ["bad", "good"])
@pytest.mark.parametrize("wifi", ["bad", "good"])
def test_emptcp_small_files_are_wifi_s(wifi: str, lte: str) -> None:
    """5.2: eMPTCP, which is Wi-Fi alone there, takes 75 to 90 % less than both links."""
    name = f"emptcp-256kb-{wifi}-{lte}"
    saved = 1 - joules(name, "wifi") / joules(name, "both")
    assert 0.75 <= saved <= 0.99


def test_emptcp_16_mb_over_good_wifi_and_bad_lte() -> None:
    """5.3: about half the energy over Wi-Fi alone, which eMPTCP keeps to."""
    ratio = joules("emptcp-16mb-good-bad", "wifi") / joules("emptcp-16mb-good-bad", "both")
    assert ratio == pytest.approx(0.5, abs=0.15)


def test_emptcp_16_mb_over_bad_wifi() -> None:
    """5.3: over bad links Wi-Fi alone costs about what MPTCP does, which is more than what both
    could; with good LTE both cost less."""
    bad = joules("emptcp-16mb-bad-bad", "wifi") / joules("emptcp-16mb-bad-bad", "both")
    assert 1 < bad < 2
    assert joules("emptcp-16mb-bad-good", "both") < 2 * joules("emptcp-16mb-bad-good", "wifi")
