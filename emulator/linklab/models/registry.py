"""Every link model, one line each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from linklab.core.link_kinds import LinkKind
from linklab.core.link_state import LinkState
from linklab.models import between_runs, carriers, events, on_off, rrc, trace, wifi
from linklab.models.model import AnyModel, Happening

MODELS: Final[tuple[AnyModel, ...]] = (
    between_runs.MODEL,
    trace.MODEL,
    on_off.MODEL,
    wifi.MODEL,
    carriers.MODEL,
    rrc.MODEL,
)
"""In the order in which files and lists have them; their layers' is that of `stacked`."""

HAPPENINGS: Final = (*events.HAPPENINGS, *(kind for model in MODELS for kind in model.happenings))
"""Kinds of everything that can happen to a link."""

_OF_SETTINGS: Final = {model.settings: model for model in MODELS}


def of_kind(kind: LinkKind) -> tuple[AnyModel, ...]:
    """The models that a link of a kind may have."""
    return tuple(model for model in MODELS if kind in model.kinds)


def of_settings(settings: object) -> AnyModel:
    """Whose settings these are. Raises KeyError for a class that is no model's."""
    return _OF_SETTINGS[type(settings)]


def ordered(settings: Iterable[Any]) -> tuple[Any, ...]:
    """Settings of several models in the order of `MODELS`."""
    return tuple(sorted(settings, key=lambda one: MODELS.index(of_settings(one))))


def stacked(settings: Iterable[Any]) -> tuple[Any, ...]:
    """The same in the order in which their layers lie over each other, the lowest first."""
    return tuple(sorted(ordered(settings), key=lambda one: of_settings(one).place))


def transitions(before: LinkState, after: LinkState) -> list[Happening]:
    """What a person would note down, seeing a link go from one state to the other.

    Rates, delays and losses that a model moves all the time are not among it.
    """
    found = events.transitions(before, after)
    for model in MODELS:
        found += model.transitions(before, after)
    return found
