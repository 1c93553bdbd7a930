"""Tests link_state.py."""

from dataclasses import replace

import pytest

from linklab.core.link_state import LinkState

STATE = LinkState(
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=20_000_000,
    delay_s=0.01,
    jitter_s=0.0,
    loss_ratio=0.01,
)


@pytest.mark.parametrize(
    ("changes", "rates_bps", "passes", "lost"),
    [
        ({}, (80_000_000, 20_000_000), (True, True), (0.01, 0.0)),
        ({"up": False}, (0, 0), (False, False), (0.01, 0.0)),
        ({"blackout": True}, (0, 0), (False, False), (1.0, 1.0)),
        ({"hold_down": True}, (0, 20_000_000), (False, True), (0.01, 0.0)),
        ({"loss_ratio": 1.0}, (0, 20_000_000), (False, True), (1.0, 0.0)),
        # A radio that sleeps can carry, once what comes has woken it.
        (
            {"hold_down": True, "hold_up": True, "rrc": "idle"},
            (80_000_000, 20_000_000),
            (False, False),
            (0.01, 0.0),
        ),
    ],
)
def test_what_a_link_can_carry(
    changes: dict[str, object],
    rates_bps: tuple[int, int],
    passes: tuple[bool, bool],
    lost: tuple[float, float],
) -> None:
    state = replace(STATE, **changes)  # type: ignore[arg-type]
    assert tuple(state.rate_bps(way) for way in ("down", "up")) == rates_bps
    assert tuple(state.passes(way) for way in ("down", "up")) == passes
    assert tuple(state.lost_ratio(way) for way in ("down", "up")) == lost


def test_what_is_held_waits_and_is_not_lost() -> None:
    changes: list[dict[str, object]] = [
        {},
        {"hold_down": True, "hold_up": True},
        {"up": False},
        {"blackout": True},
        {"loss_ratio": 1},
    ]
    states = [replace(STATE, **one) for one in changes]  # type: ignore[arg-type]
    assert [one.loses_all("down") for one in states] == [False, False, True, True, True]
    assert [one.loses_all("up") for one in states] == [False, False, True, True, False]
