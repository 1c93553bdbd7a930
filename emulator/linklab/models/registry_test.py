from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from linklab.core.link_kinds import FIVE_G, FIXED, KINDS, LTE, OTHER, SATELLITE, WIFI
from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.between_runs import BetweenRunsSettings
from linklab.models.carriers import CarrierSettings
from linklab.models.endc import Endc, EndcSettings
from linklab.models.events import CHANGES, Event, noted
from linklab.models.layer import NO_LOAD, Layer
from linklab.models.model import Happening
from linklab.models.on_off import OnOff, OnOffSettings
from linklab.models.pauses import Pause, Pauses
from linklab.models.registry import (
    HAPPENINGS,
    MODELS,
    of_kind,
    of_settings,
    ordered,
    stacked,
    transitions,
)
from linklab.models.rrc import RrcSettings
from linklab.models.slots import Slots, SlotSettings
from linklab.models.spread import RateSpread, SpreadOfLink, SpreadSettings
from linklab.models.trace import Trace, TraceSettings

STATE = LinkState(
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=20_000_000,
    delay_s=0.005,
    jitter_s=0.0,
    loss_ratio=0.0,
    access_point="ap1",
)


MAKING: dict[str, Callable[[], Layer]] = {
    "on_off": lambda: OnOff(OnOffSettings(1_000_000, 3.0, 2.0), Random(1)),
    "endc": lambda: Endc(EndcSettings(147_000_000, 31_000_000, 0.022, 3.0, 2.0, 1.0), Random(1)),
    "pauses": lambda: Pauses(
        [Pause("stall", 12.6, 0.1, 0.6), Pause("handover", 10, 0.052, 0.067)],
        [Random(1), Random(2)],
    ),
    "slots": lambda: Slots(SlotSettings(), Random(1)),
    "spread": lambda: RateSpread(
        SpreadOfLink(SpreadSettings(26_000_000, 572_000_000), 80_000_000, 20_000_000), Random(1)
    ),
}
"""The models that draw at random, whatever the load is."""


@pytest.mark.parametrize("name", MAKING)
def test_asking_more_often_changes_nothing_and_a_seed_repeats_all(name: str) -> None:
    changes = layer_test.history(MAKING[name](), STATE, 100)
    assert len(changes) > 5
    assert layer_test.history(MAKING[name](), STATE, 100) == changes
    often = MAKING[name]()
    for t_s in (tick / 20 for tick in range(2000)):
        expected = changes[bisect_right(changes, t_s, key=lambda one: one[0]) - 1][1]
        assert often.apply(t_s, NO_LOAD, STATE) == expected
        assert often.apply(t_s, NO_LOAD, STATE) == expected
        assert often.next_s() > t_s


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"down_rate_bps": 1, "delay_s": 1.0, "loss_ratio": 0.5, "signal_dbm": -60.0}, []),
        ({"up": False}, [Happening("carrier-down")]),
        ({"blackout": True}, [Happening("outage")]),
        ({"carriers": 3}, [Happening("carriers", "3")]),
        ({"rrc": "drx"}, [Happening("rrc", "drx")]),
        ({"pause": "stall"}, [Happening("pause", "stall")]),
        ({"technology": "nr"}, [Happening("technology", "nr")]),
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
    assert {one.kind for one in found} <= set(HAPPENINGS)


@pytest.mark.parametrize("what", [row.attribute for row in CHANGES])
def test_every_key_of_an_event_has_its_kind_and_it_is_listed(what: str) -> None:
    for value in ("up", "down") if what == "carrier" else (1,):
        event = Event("wifi", at_s=1.0, **{what: value})  # type: ignore[arg-type]
        assert event.kind in HAPPENINGS
        assert {one.kind for one in noted([event], [event])} <= set(HAPPENINGS)
        shown = event.kind in what or what.removesuffix("_bps").endswith(event.kind)
        assert shown or (event.kind == "delay") == (what in ("rtt_s", "jitter_s"))


def test_the_way_back_has_its_own_words() -> None:
    down = replace(STATE, up=False, blackout=True, pause="tunnel")
    assert transitions(down, STATE) == [
        Happening("carrier-up"),
        Happening("outage-end"),
        Happening("pause-end", "tunnel"),
    ]


SETTINGS = (
    BetweenRunsSettings(0.1),
    Trace(Path("x.csv"), (), TraceSettings()),
    OnOffSettings(1000),
    CarrierSettings(2),
    RrcSettings(),
)


def test_settings_are_listed_in_one_order_and_stacked_in_another() -> None:
    spread, trace, on_off, carriers, rrc = SETTINGS
    assert ordered(reversed(SETTINGS)) == SETTINGS
    assert stacked(reversed(SETTINGS)) == (trace, spread, on_off, carriers, rrc)


def test_a_model_is_known_by_its_settings_and_no_key_is_two_models() -> None:
    for model in MODELS:
        assert [one for one in MODELS if one.settings is model.settings] == [model]
    assert of_settings(SETTINGS[0]) is MODELS[0]
    keys = [row.key for model in MODELS for row in model.rows]
    assert len(keys) == len(set(keys))


def test_a_kind_has_its_own_models_and_those_for_all() -> None:
    keys = {
        kind: {model.rows[0].key for model in of_kind(kind)}
        for kind in KINDS.values()
        if kind is not OTHER
    }
    everywhere = set.intersection(*keys.values())
    own = {
        WIFI: {"radio"},
        LTE: {"boost", "carriers", "rrc"},
        FIVE_G: {"boost", "endc", "carriers", "rrc"},
        SATELLITE: {"slots"},
        FIXED: {"boost"},
    }
    assert own == {kind: of_it - everywhere for kind, of_it in keys.items() if of_it - everywhere}


def test_a_link_of_the_user_s_own_kind_may_have_every_model() -> None:
    assert of_kind(OTHER) == MODELS
