"""Defines quantities that the keys of links, models and events share. Pure."""

from __future__ import annotations

from typing import Final

from linklab.core import units
from linklab.core.limits import (
    MAX_PAYLOAD_BYTES,
    MAX_RATE_BPS,
    MAX_RTT_S,
    MAX_TIME_S,
    MIN_LENGTH_S,
    MIN_RATE_BPS,
)
from linklab.schema.quantities import Quantity, duration, number, pattern, ratio, size


def _rate(text: str) -> int:
    rate = units.parse_rate(text)
    if rate < MIN_RATE_BPS:
        raise ValueError(
            f"{text!r} is too little to be a rate; allowed: at least "
            f"{units.format_rate(MIN_RATE_BPS)} (for an outage write 'carrier: down' in an event)"
        )
    if rate > MAX_RATE_BPS:
        raise ValueError(
            f"{text!r} is more than can be shaped; allowed: at most "
            f"{units.format_rate(MAX_RATE_BPS)}"
        )
    return rate


RATE: Final = Quantity(
    _rate,
    units.format_rate,
    f"{units.format_rate(MIN_RATE_BPS)} to {units.format_rate(MAX_RATE_BPS)}",
)
"""The rate that a link is shaped to."""

ROUND_TRIP: Final = duration(0.0, MAX_RTT_S)

TIME: Final = duration(0.0, MAX_TIME_S)


def or_random(known: Quantity) -> Quantity:
    """Returns a quantity that may also be `random`, which reads as None: a draw from the seed."""
    return Quantity(
        lambda text: None if text == "random" else known.parse(text),
        lambda value: "random" if value is None else known.form(value),
        f"{known.allowed}, or random",
    )


LENGTH: Final = duration(MIN_LENGTH_S, MAX_TIME_S)
"""A duration."""

SHARE: Final = ratio(example="0.3 %")

SIZE: Final = size(1, MAX_PAYLOAD_BYTES)

BURST: Final = number(1.0, 1000.0, "packets")

NODE_NAME: Final = pattern("[a-z][a-z0-9]{0,7}", "name of a node", "up to 8 of a-z and 0-9")
