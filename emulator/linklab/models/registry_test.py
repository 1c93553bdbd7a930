from dataclasses import replace

import pytest

from linklab.core.link_state import LinkState
from linklab.models.model import Happening
from linklab.models.registry import transitions

STATE = LinkState(
    up=True, down_rate_bps=80_000_000, up_rate_bps=20_000_000,
    delay_s=0.005, jitter_s=0.0, loss_ratio=0.0, access_point="ap1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"down_rate_bps": 1, "delay_s": 1.0, "loss_ratio": 0.5, "signal_dbm": -60.0}, []),
        ({"up": False}, [Happening("carrier-down")]),
        ({"blackout": True}, [Happening("outage")]),
        ({"carriers": 3}, [Happening("carriers", "3")]),
        ({"rrc": "drx"}, [Happening("rrc", "drx")]),
        ({"lease": 1}, [Happening("address", "1")]),
        ({"access_point": ""}, [Happening("handover", "ap1")]),
        ({"access_point": "ap2"}, [Happening("associated", "ap2")]),
        (
            {"up": False, "access_point": ""},
            [Happening("carrier-down"), Happening("handover", "ap1")],
        ),
    ],
)
def test_what_happened(changes: dict[str, object], found: list[Happening]) -> None:
    assert transitions(STATE, replace(STATE, **changes)) == found  # type: ignore[arg-type]


def test_the_way_back_has_its_own_words() -> None:
    down = replace(STATE, up=False, blackout=True)
    assert transitions(down, STATE) == [Happening("carrier-up"), Happening("outage-end")]
