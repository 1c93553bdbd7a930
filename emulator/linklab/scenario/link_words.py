"""Reads a link in one line, such as `20 Mbit/s/5 Mbit/s 30 ms 1 %` or `fast-4g`.

`--link`, a scenario's links, changes of a running lab and Python take such a line. It becomes the keys
of a link or an event, which the tables of these read and check. `profiles/links.yaml` has the lines that
people know by name.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

from linklab.core import units
from linklab.core.link_kinds import KINDS
from linklab.core.paths import PROFILES
from linklab.models import events, impairments
from linklab.schema import document
from linklab.schema.mapping import guess

PRESETS_FILE: Final = PROFILES / "links.yaml"

_CHANGES: Final = tuple(row.key for row in events.CHANGES)
_IMPAIRED: Final = tuple(impairments.KEYS.values())
_KEYED: Final = re.compile(r"([a-z_]+(?:\.[a-z_]+)?)(?:\s*=\s*|\s+)(.*\S)", re.S)
_PLAIN: Final = re.compile(r"[0-9.]+")
_QUANTITY: Final = re.compile(r"[0-9.]+\s*(\S+)")
_UPLINK: Final = re.compile(r"\s*/\s*(?=[0-9.])")
_KEY_OF: Final = {"a rate": "down", "a duration": "rtt", "a ratio": "loss", "a size": "queue"}


@dataclass(frozen=True, slots=True)
class Preset:
    """A link that people know by name: a title, its line, and where its figures come from."""

    title: str
    link: str
    source: str


@functools.cache
def presets() -> dict[str, Preset]:
    """Returns the presets by name."""
    text = document.read(PRESETS_FILE, PRESETS_FILE.name)
    read = document.plain(text, PRESETS_FILE.name, document.LIMITS)
    return {name: Preset(**one) for name, one in read.items()}


def allowed() -> str:
    """Describes the allowed lines."""
    return (
        f"{', '.join(presets())}; or rates, round trip, loss and queue, such as "
        "'20mbit/5mbit,30ms,1%,200kB'; and keys of events, such as 'jitter 5ms'"
    )


def keys_of(line: str) -> dict[str, Any]:
    """Returns a line as keys and values of a link or an event. A preset's `kind` is `preset_kind`.

    Raises ValueError that says what is allowed.
    """
    found: dict[str, Any] = {}
    named: dict[str, Any] = {}
    for part in line.split(","):
        keyed = _KEYED.fullmatch(part.strip())
        if keyed and keyed[1].partition(".")[0] in _CHANGES:
            _take(found, *keyed.groups())
            continue
        for word in _words(part):
            if word in presets():
                if named:
                    raise _wrong(word, "is a second name")
                named = keys_of(presets()[word].link)
                named["preset_kind"] = named.pop("kind", "other")
            elif word in KINDS:
                _take(found, "kind", word)
            elif word == "outage":
                _take(found, "outage", "true")
            else:
                _take(found, *_quantity(word))
    if not found and not named:
        raise _wrong(line, "is empty")
    if "down" in found:
        found.setdefault("up", found["down"])
    for key in _IMPAIRED:
        if key in found and key in named:
            found[key] = named[key] | found[key]
    return named | found


def _words(part: str) -> list[str]:
    """Splits a part at spaces, except between a number and its unit. An uplink begins with `/`."""
    words: list[str] = []
    for word in _UPLINK.sub(" /", part).split():
        if words and _PLAIN.fullmatch(words[-1].removeprefix("/")):
            words[-1] += f" {word}"
        else:
            words.append(word)
    if not words:
        raise _wrong(part, "is empty")
    return words


def _quantity(word: str) -> tuple[str, str]:
    """Returns the key that a quantity's unit stands for, and its value."""
    value = word.removeprefix("/")
    quantity = _QUANTITY.fullmatch(value)
    kind = quantity and units.kind_of(quantity[1])
    if word in _CHANGES:
        raise _wrong(word, "has no value")
    if kind is None:
        near = "" if quantity else guess(word, (*presets(), *_CHANGES, *KINDS))
        raise _wrong(word, f"is no part of a link{near}")
    key = _KEY_OF[kind]
    if word != value and key != "down":
        raise _wrong(word, "is no rate of an uplink")
    return "up" if word != value else key, value


def _take(found: dict[str, Any], key: str, value: str) -> None:
    whole, _, inner = key.partition(".")
    within = found.setdefault(whole, {}) if inner else found
    if not isinstance(within, dict) or (inner or whole) in within:
        raise _wrong(value, f"is a second {key}")
    within[inner or whole] = value


def _wrong(text: str, why: str) -> ValueError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return ValueError(f"{shown!r} {why}; allowed: {allowed()}")
