"""The keys of link models in a scenario, with what is allowed. Pure.

Each table stands for one settings class of `linklab.models`, whose docstring says what its
attributes mean and where the defaults come from.
"""

from __future__ import annotations

import re

from linklab.models.air import ACCESS_BG
from linklab.models.events import MIN_RATE_BPS
from linklab.models.roaming import HANDOVERS
from linklab.models.trace import ENDS
from linklab.schema.quantities import (
    Quantity,
    Row,
    choice,
    count,
    duration,
    measure,
    number,
    one_named,
    rate,
    ratio,
    size,
)


def _node_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,7}", text):
        raise ValueError(f"{text!r} is no name of a node; allowed: up to 8 of a-z and 0-9")
    return text


NODE_NAME = Quantity(_node_name, str)


def _start(text: str) -> float | None:
    return None if text == "random" else _START.parse(text)


_START = duration(0.0, 86_400.0)

TRACE = (
    Row("start", "start_s", Quantity(
        _start, lambda value: "random" if value is None else _START.form(value)
    )),
    Row("end", "end", choice(*ENDS)),
)  # fmt: skip
"""`start: random` draws a moment of the trace from the seed."""

TRACE_RATE = choice("scaled", "recorded")
"""Whether the means of a trace become the link's `down` and `up`, or stay as they are."""

ON_OFF = (
    Row("rate", "off_rate_bps", rate(MIN_RATE_BPS, 10_000_000_000)),
    Row("on", "on_s", duration(1e-3, 86_400.0)),
    Row("off", "off_s", duration(1e-3, 86_400.0)),
)
"""`rate` is the most that the link carries while it is off."""

CARRIERS = (
    Row("count", "count", count(1, 32)),
    Row("first", "first_share", ratio(0.001, 1.0)),
    Row("delay", "delay_median_s", duration(1e-3, 600.0)),
    Row("sigma", "delay_sigma", number(0.0, 3.0)),
    Row("slow", "slow_probability", ratio()),
    Row("never", "never_probability", ratio()),
    Row("trigger", "trigger_bytes", size(1, 100_000_000)),
    Row("trigger_time", "trigger_s", duration(0.0, 10.0)),
    Row("idle", "idle_s", duration(0.02, 60.0)),
    Row("key", "key", choice("device", "connection")),
)

RRC = (
    Row("promotion", "promotion_s", duration(0.0, 10.0)),
    Row("inactivity", "inactivity_s", duration(1e-3, 10.0)),
    Row("drx_cycle", "drx_cycle_s", duration(0.01, 10.24)),
    Row("tail", "tail_s", duration(1e-3, 600.0)),
)

RADIO = (
    Row("standard", "standard", choice("g", "n", "ac")),
    Row("width", "width_mhz", one_named({20: "20 MHz", 40: "40 MHz", 80: "80 MHz"})),
    Row("streams", "streams", count(1, 8)),
    Row("cell", "access", one_named({None: "pure", ACCESS_BG: "mixed"})),
    Row("loss", "loss_ratio", ratio()),
    Row("edge_loss", "edge_loss_ratio", ratio()),
    Row("edge_snr", "edge_snr_db", measure("dB", -5.0, 40.0)),
    Row("loss_burst", "loss_burst_packets", number(1.0, 1000.0)),
)
"""A `mixed` cell is one of 802.11g that 802.11b shares."""

ROAMING = (
    Row("handover", "handover", one_named({value: name for name, value in HANDOVERS.items()})),
    Row("hysteresis", "hysteresis_db", measure("dB", 0.0, 30.0)),
    Row("power", "power_dbm", measure("dBm", -20.0, 40.0)),
    Row("loss_1m", "loss_1m_db", measure("dB", 0.0, 100.0)),
    Row("exponent", "exponent", number(1.0, 8.0)),
)

_PLACE = measure("m", -100_000.0, 100_000.0)

ACCESS_POINT = (
    Row("name", "name", NODE_NAME),
    Row("x", "x_m", _PLACE),
    Row("y", "y_m", _PLACE),
    Row("signal", "signal_dbm", measure("dBm", -120.0, 0.0), None),
)

WAYPOINT = (
    Row("at", "t_s", duration(0.0, 86_400.0)),
    Row("x", "x_m", _PLACE),
    Row("y", "y_m", _PLACE),
)

_FREQUENCY = measure("/s", 0.0001, 100.0)

STATIONS = (
    Row("count", "count", count(0, 100)),
    Row("begins", "begins_per_s", _FREQUENCY),
    Row("ends", "ends_per_s", _FREQUENCY),
)
