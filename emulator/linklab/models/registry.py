"""Lists the link models, one line each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from linklab.core.link_kinds import OTHER, LinkKind
from linklab.core.link_state import LinkState
from linklab.models import (
    between_runs,
    boost,
    carriers,
    endc,
    events,
    on_off,
    pauses,
    rrc,
    slots,
    spread,
    trace,
    wifi,
)
from linklab.models.model import AnyModel, Happening

MODELS: Final[tuple[AnyModel, ...]] = (
    between_runs.MODEL,
    trace.MODEL,
    spread.MODEL,
    endc.MODEL,
    slots.MODEL,
    boost.MODEL,
    pauses.MODEL,
    on_off.MODEL,
    wifi.MODEL,
    carriers.MODEL,
    rrc.MODEL,
)
"""In the order of files and lists. `stacked` has the order of their layers."""

HAPPENINGS: Final = (*events.HAPPENINGS, *(kind for model in MODELS for kind in model.happenings))
"""The kinds of all that can happen to a link."""

_OF_SETTINGS: Final = {model.settings: model for model in MODELS}


def of_kind(kind: LinkKind) -> tuple[AnyModel, ...]:
    return tuple(model for model in MODELS if kind in (OTHER, *model.kinds))


def of_settings(settings: object) -> AnyModel:
    """Returns the model of these settings. Raises KeyError for other classes."""
    return _OF_SETTINGS[type(settings)]


def ordered(settings: Iterable[Any]) -> tuple[Any, ...]:
    """Sorts the settings of several models in the order of `MODELS`."""
    return tuple(sorted(settings, key=lambda one: MODELS.index(of_settings(one))))


def stacked(settings: Iterable[Any]) -> tuple[Any, ...]:
    """Sorts the settings of several models in the order of their layers, lowest first."""
    return tuple(sorted(ordered(settings), key=lambda one: of_settings(one).place))


def transitions(before: LinkState, after: LinkState) -> list[Happening]:
    """Returns what happened to a link between two states.

    Rates, delays and losses that a model changes all the time are left out.
    """
    found = events.transitions(before, after)
    for model in MODELS:
        found += model.transitions(before, after)
    return found
