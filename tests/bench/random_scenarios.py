"""Draws random scenarios, for which no algorithm was designed. Pure.

Each is a scenario of two links as YAML text, the same for the same seed and number. The ranges are
those of common links: a bad DSL line to fast 5G, a server nearby or on another continent, and their
usual faults.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

RATE_BPS = (1e6, 300e6)
RTT_S = (0.005, 0.3)
LOSS_RATIO = (1e-4, 0.02)
QUEUE_S = (0.05, 0.4)
"""The seconds in which a full queue drains."""
SIZE_BYTES = (256e3, 500e6)
LONGEST_S = 40.0
"""The file is limited to what both links carry in this time, so that slow links take bounded time.
"""
RAMP_STEPS = 8
SHORTEST_RAMP_S = 0.2


def draw(seed: int, number: int) -> tuple[str, str]:
    """Returns the name and the text of one scenario."""
    random = Random(f"{seed}/{number}")
    rates = {link: _log_uniform(random, RATE_BPS) for link in ("wifi", "lte")}
    size = min(_log_uniform(random, SIZE_BYTES), LONGEST_S * sum(rates.values()) / 8)
    size = max(size, SIZE_BYTES[0])
    least_s = size * 8 / sum(rates.values())
    name = f"random-{seed}-{number:02}"
    lines = [
        f"name: {name}",
        f"title: Drawn at random, number {number} of seed {seed}",
        f"payload: {{size: {size / 1e3:.0f} kB}}",
        "links:",
        *(_link(random, link, rate) for link, rate in rates.items()),
    ]
    events = [line for link in rates for line in _events(random, link, rates[link], least_s)]
    return name, "\n".join([*lines, *(["events:", *events] if events else [])]) + "\n"


def _link(random: Random, link: str, rate_bps: float) -> str:
    """Returns a link's line. Every second link loses packets at random. Acknowledgements always
    fit."""
    rtt_s = _log_uniform(random, RTT_S)
    loss = _log_uniform(random, LOSS_RATIO) if random.random() < 0.5 else 0.0
    queue_bytes = max(32e3, _uniform(random, QUEUE_S) * rate_bps / 8)
    return (
        f"  {link}: {{down: {rate_bps / 1e6:.3f} Mbit/s, up: {rate_bps / 4e6:.3f} Mbit/s, "
        f"rtt: {rtt_s * 1e3:.1f} ms, loss: {loss * 100:.3f} %, queue: {queue_bytes / 1e3:.0f} kB}}"
    )


def _events(random: Random, link: str, rate_bps: float, least_s: float) -> Iterator[str]:
    """Returns a link's events: none in half of the cases, else an outage, seen by the client or
    not, or a ramp to another rate. Half of the ramps go back."""
    kind = random.choice(["none", "none", "outage", "ramp"])
    at_s = _uniform(random, (0.1, 0.7)) * least_s
    if kind == "outage":
        what = random.choice(["carrier: down", "outage: true"])
        for_s = _log_uniform(random, (0.3, 8.0))
        yield f"  - {{at: {at_s:.3f} s, link: {link}, {what}, for: {for_s:.3f} s}}"
    elif kind == "ramp":
        to, for_s = _log_uniform(random, (0.1, 1.0)), _uniform(random, (0.2, 0.6)) * least_s
        for_s = max(for_s, SHORTEST_RAMP_S)
        back = random.random() < 0.5
        steps = [1 + (to - 1) * step / RAMP_STEPS for step in range(1, RAMP_STEPS + 1)]
        for step, part in enumerate([*steps, *(reversed(steps[:-1]) if back else ())]):
            when_s = at_s + for_s * step / RAMP_STEPS
            yield (
                f"  - {{at: {when_s:.3f} s, link: {link}, down: {part * rate_bps / 1e6:.3f} Mbit/s}}"
            )


def _uniform(random: Random, between: tuple[float, float]) -> float:
    return random.uniform(*between)


def _log_uniform(random: Random, between: tuple[float, float]) -> float:
    return math.exp(random.uniform(*(math.log(one) for one in between)))
