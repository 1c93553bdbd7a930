"""Defines one queue whose oldest packet goes when another finds it full (Linux net/sched/sch_fifo.c,
pfifo_head_drop). Pure.

Starlink's queue drops from the front (arXiv, May 2026).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.queues.discipline import Discipline, packets
from linklab.schema.rows import Table


@dataclass(frozen=True, slots=True)
class DropHead:
    """Has no settings, besides the link's queue size."""


DISCIPLINE: Final = Discipline(
    "drop-head",
    "pfifo_head_drop",
    Table(
        DropHead,
        (),
        about="The oldest packet is dropped if one finds the queue full, which counts packets.",
    ),
    options=lambda settings, queue_bytes: struct.pack("=I", packets(queue_bytes)),
)
