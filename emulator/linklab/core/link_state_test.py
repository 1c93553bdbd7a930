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


FULL, UP_ALONE, NOTHING = (80_000_000, 20_000_000), (0, 20_000_000), (0, 0)
BOTH, NONE, DOWN, UP = (True, True), (False, False), (True, False), (False, True)
ASLEEP = {"hold_down": True, "hold_up": True, "rrc": "idle"}


@pytest.mark.parametrize(
    ("changes", "rates_bps", "passes", "out", "lost"),
    [
        ({}, FULL, BOTH, NONE, (0.01, 0.0)),
        ({"up": False}, NOTHING, NONE, BOTH, (0.01, 0.0)),
        ({"blackout": True}, NOTHING, NONE, BOTH, (1.0, 1.0)),
        ({"hold_down": True}, UP_ALONE, UP, DOWN, (0.01, 0.0)),
        ({"hold_up": True}, (80_000_000, 0), DOWN, UP, (0.01, 0.0)),
        ({"loss_ratio": 1.0}, UP_ALONE, UP, DOWN, (1.0, 0.0)),
        # A radio that sleeps can carry, once what comes has woken it.
        (ASLEEP, FULL, NONE, NONE, (0.01, 0.0)),
        ({"hold_down": True, "rrc": "drx"}, FULL, UP, NONE, (0.01, 0.0)),
        ({**ASLEEP, "blackout": True}, NOTHING, NONE, BOTH, (1.0, 1.0)),
    ],
)
def test_what_a_link_can_carry(
    changes: dict[str, object],
    rates_bps: tuple[int, int],
    passes: tuple[bool, bool],
    out: tuple[bool, bool],
    lost: tuple[float, float],
) -> None:
    state = replace(STATE, **changes)  # type: ignore[arg-type]
    assert tuple(state.rate_bps(way) for way in ("down", "up")) == rates_bps
    assert tuple(state.passes(way) for way in ("down", "up")) == passes
    assert tuple(state.is_out(way) for way in ("down", "up")) == out
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
