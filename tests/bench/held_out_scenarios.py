"""Draws the held-out set: scenarios that no constant of an algorithm was chosen by. Pure.

A release's version seeds the set, so each release is judged by links that nobody has seen before.
The ranges are wider apart than real faults: swings and outages that alternate are odd on purpose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import yaml

LINKS = ("wifi", "lte")
RATE_BPS = (3e6, 80e6)
RTT_S = (0.01, 0.2)
QUEUE_S = (0.05, 0.4)
"""The seconds in which a full queue drains."""
LEAST_S = (3.0, 10.0)
"""The seconds for the file over both links at their first rates."""
MOST_BYTES = 30e6
LASTS = 5
"""Changes that repeat go on for so many times the least seconds."""

Drawn = dict[str, object]


@dataclass
class _Draft:
    """A scenario of two constant links, to which a kind adds what is special."""

    random: Random
    rates_bps: dict[str, float]
    links: dict[str, Drawn]
    least_s: float
    events: list[Drawn] = field(default_factory=list)
    traffic: list[Drawn] = field(default_factory=list)


def _static(_: _Draft) -> None:
    """Links that never change."""


def _walk(draft: _Draft) -> None:
    """Rates wander at random."""
    for link, rate_bps in draft.rates_bps.items():
        draft.links[link]["spread"] = {
            "down_p10": _rate(rate_bps * draft.random.uniform(0.15, 0.6)),
            "down_p90": _rate(rate_bps * draft.random.uniform(1.5, 3)),
            "memory": _time(_log_uniform(draft.random, (1, 10))),
            "step": _time(_log_uniform(draft.random, (0.1, 1))),
        }


def _outages(draft: _Draft) -> None:
    """One link is away once, or both are in turn (ping-pong)."""
    faults: tuple[Drawn, Drawn] = ({"carrier": "down"}, {"outage": True})
    what = draft.random.choice(faults)
    if draft.random.random() < 0.4:
        link, at_s = draft.random.choice(LINKS), draft.random.uniform(0.1, 0.6) * draft.least_s
        for_s = _log_uniform(draft.random, (0.5, 8))
        draft.events.append({"at": _time(at_s), "link": link, **what, "for": _time(for_s)})
        return
    for link, at_s, for_s in _in_turn(draft, _log_uniform(draft.random, (0.8, 4))):
        draft.events.append({"at": _time(at_s), "link": link, **what, "for": _time(0.9 * for_s)})


def _loss(draft: _Draft) -> None:
    """One link or both lose packets at random, alone or in bursts."""
    some = draft.random.choice((LINKS, LINKS, ("wifi",), ("lte",)))
    for link in some:
        draft.links[link]["loss"] = f"{_log_uniform(draft.random, (0.05, 2)):.3f} %"
        draft.links[link]["loss_burst"] = draft.random.choice((1, 1, 3, 8))


def _swing(draft: _Draft) -> None:
    """One link is fast while the other is slow, in turn."""
    low = draft.random.uniform(0.03, 0.3)
    for link, at_s, for_s in _in_turn(draft, _log_uniform(draft.random, (0.5, 6))):
        rate_bps = draft.rates_bps[link]
        draft.events += [
            {"at": _time(at_s), "link": link, "down": _rate(low * rate_bps)},
            {"at": _time(at_s + for_s), "link": link, "down": _rate(rate_bps)},
        ]


def _crowd(draft: _Draft) -> None:
    """Others download over Wi-Fi for a part of the time or for all of it. Half have a call, too."""
    for _ in range(draft.random.randint(1, 4)):
        flow: Drawn = {"link": "wifi", "bulk": {"connections": draft.random.choice((1, 1, 2, 4))}}
        if draft.random.random() < 0.5:
            from_s = draft.random.uniform(0, 0.5) * draft.least_s
            flow |= {"from": _time(from_s), "to": _time(from_s + draft.least_s)}
        draft.traffic.append(flow)
    if draft.random.random() < 0.5:
        draft.traffic.append({"link": "lte", "call": {"rate": "1.5 Mbit/s"}})


KINDS: dict[str, tuple[int, Callable[[_Draft], None]]] = {
    "static": (6, _static),
    "walk": (7, _walk),
    "outages": (7, _outages),
    "loss": (7, _loss),
    "swing": (6, _swing),
    "crowd": (7, _crowd),
}
"""How many scenarios each kind has, and what makes them."""


def series(version: str) -> str:
    """Returns the release of a version, such as 1.2 of 1.2.dev3+gabc. Raises ValueError."""
    found = re.match(r"\d+(\.\d+)*", version)
    if found is None:
        raise ValueError(f"version {version!r} names no release; needed: git tags or a release")
    return found[0]


def draw_all(version: str) -> Iterator[tuple[str, str]]:
    """Yields kind and YAML text of each scenario of a release's set. Raises ValueError."""
    for kind, (count, change) in KINDS.items():
        for number in range(1, count + 1):
            yield kind, _drawn(series(version), kind, number, change)


def _drawn(release: str, kind: str, number: int, change: Callable[[_Draft], None]) -> str:
    random = Random(f"{release}/{kind}/{number}")
    rates_bps = {link: _log_uniform(random, RATE_BPS) for link in LINKS}
    total_bytes_per_s = sum(rates_bps.values()) / 8
    size = min(_log_uniform(random, LEAST_S) * total_bytes_per_s, MOST_BYTES)
    links = {link: _link(random, rate_bps) for link, rate_bps in rates_bps.items()}
    draft = _Draft(random, rates_bps, links, size / total_bytes_per_s)
    change(draft)
    draft.events.sort(key=lambda event: float(str(event["at"]).removesuffix(" s")))
    whole = {
        "name": f"held-out-{kind}-{number}",
        "title": f"Held out, {kind} {number} of release {release}",
        "payload": {"size": f"{size / 1e3:.0f} kB"},
        "links": links,
        "events": draft.events,
        "traffic": draft.traffic,
    }
    return yaml.safe_dump({key: one for key, one in whole.items() if one}, sort_keys=False)


def _link(random: Random, rate_bps: float) -> Drawn:
    queue_bytes = max(32e3, random.uniform(*QUEUE_S) * rate_bps / 8)
    return {
        "down": _rate(rate_bps),
        "up": _rate(rate_bps / 4),
        "rtt": _time(_log_uniform(random, RTT_S)),
        "queue": f"{queue_bytes / 1e3:.0f} kB",
    }


def _in_turn(draft: _Draft, for_s: float) -> Iterator[tuple[str, float, float]]:
    """Yields which link changes from when for how long, one after the other."""
    at_s, first = draft.random.uniform(0, 1), draft.random.randrange(2)
    for turn in range(min(200, math.ceil(LASTS * draft.least_s / for_s))):
        yield LINKS[(first + turn) % 2], at_s + turn * for_s, for_s


def _log_uniform(random: Random, between: tuple[float, float]) -> float:
    return math.exp(random.uniform(*(math.log(one) for one in between)))


def _rate(rate_bps: float) -> str:
    return f"{rate_bps / 1e6:.3f} Mbit/s"


def _time(seconds: float) -> str:
    return f"{seconds:.4f} s"
