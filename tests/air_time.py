"""Compares what Wi-Fi's uplinks carry with 802.11g's DCF, whose stations take turns with the mean backoff."""

from __future__ import annotations

import math
import random
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from conftest import PROBES, queue
from linklab.core.link_state import DIRECTIONS

SIFS_S, SLOT_S, DIFS_S = 10e-6, 9e-6, 28e-6
PREAMBLE_S, EXTENSION_S, SYMBOL_S = 20e-6, 6e-6, 4e-6
SERVICE_AND_TAIL_BITS, ACK_BYTES, ACK_MBPS = 22, 14, 24
MEAN_BACKOFF = 7.5
FRAME_BYTES, AIR_BYTES = 1514, 1514 + 24
"""An Ethernet frame, and the same with 802.11's headers and checksum."""

ICMP_BYTES = 14 + 576
"""A frame that refuses a packet of 1,500 bytes (RFC 1812 4.3.2.3)."""

SIGNALS_DBM = {6: -92, 9: -91, 12: -89, 18: -85, 24: -83, 36: -79, 48: -76, 54: -74}
"""The least signal for each rate in Mbit/s: noise of -94 dBm and assumption 2."""

FROM_S, SECONDS, LOAD = 1.0, 4, 1.1

AIM_FRAMES = 2.0
"""Of up to 6,400. The counters hold whole frames, and the model looks at other packets every 20 ms."""


class Cell(NamedTuple):
    """An uplink's PHY rate in Mbit/s and the number of other stations, which always send."""

    phy_mbps: int
    others: int


def frame_s(size_bytes: int, phy_mbps: float) -> float:
    """Returns the air time of a frame in whole symbols (IEEE 802.11 17.4.3 and 18.5.3)."""
    bits = SERVICE_AND_TAIL_BITS + 8 * size_bytes
    return PREAMBLE_S + EXTENSION_S + SYMBOL_S * math.ceil(bits / (4 * phy_mbps))


def turn_s(cell: Cell, ethernet_bytes: int) -> float:
    """Returns the air time of one frame's access, if stations take turns."""
    backoff_s = MEAN_BACKOFF * SLOT_S
    overhead_s = DIFS_S + backoff_s + PREAMBLE_S + EXTENSION_S + SIFS_S
    air_bytes = ethernet_bytes + AIR_BYTES - FRAME_BYTES
    return overhead_s + frame_s(ACK_BYTES, ACK_MBPS) + 8 * air_bytes / (cell.phy_mbps * 1e6)


def stated_bps(cell: Cell) -> float:
    """Returns a station's rate if stations take turns."""
    return 8 * FRAME_BYTES / turn_s(cell, FRAME_BYTES) / (1 + cell.others)


def probe(file: Path, cells: Sequence[Cell]) -> tuple[object, ...]:
    """Writes a scenario with a link for each cell. Returns the words of `linklab` that saturate them."""
    links, senders = [], []
    for number, cell in enumerate(cells):
        others = f"{{count: {cell.others}, begins: 100 /s, ends: 0.0001 /s}}"
        point = f"{{name: a{number}, signal: {SIGNALS_DBM[cell.phy_mbps]} dBm}}"
        radio = f"{{standard: g, loss: 0 %, edge_loss: 0 %, access_points: [{point}]}}"
        rates = "down: 1 Gbit/s, up: 1 Gbit/s, rtt: 10 ms, queue: 1 MB"
        name = f"wifi{number}"
        links.append(f"  {name}: {{kind: wifi, {rates}, radio: {radio}, stations: {others}}}\n")
        packets = round(LOAD * stated_bps(cell) * SECONDS / 8 / FRAME_BYTES)
        words = f"python3 {shlex.quote(str(PROBES / 'udp.py'))} wlan{number} {packets}"
        senders.append(f"{words} {SECONDS / packets} &")
    file.write_text(f"name: {file.stem}\npayload: {{size: 1 MB}}\nlinks:\n{''.join(links)}")
    return (file, "--", "sh", "-c", f"{' '.join(senders)} wait")


def over_frames(run_dir: Path, number: int, cell: Cell) -> float:
    """Returns how many frames an uplink carried more than it states, while it was saturated. The
    server's kernel refuses some packets by ICMP, which takes the same air."""
    passed = {}
    for way in DIRECTIONS:
        first, last = (
            next(one for one in queue(run_dir, f"wifi{number}", way) if one["t_s"] >= t_s)
            for t_s in (FROM_S, SECONDS - 0.5)
        )
        passed[way] = last["sent_bytes"] - first["sent_bytes"]
    own_s = (last["t_s"] - first["t_s"]) / (1 + cell.others)
    own_s -= passed["down"] / ICMP_BYTES * turn_s(cell, ICMP_BYTES)
    return float(passed["up"] / FRAME_BYTES - own_s / turn_s(cell, FRAME_BYTES))


def random_cells(seed: int) -> list[Cell]:
    """Returns a cell of each rate, with some other stations."""
    dice = random.Random(seed)
    return [Cell(mbps, dice.choice((0, 1, 2, 5, 10))) for mbps in SIGNALS_DBM]
