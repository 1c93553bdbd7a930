"""Defines one queue for all packets, which drops packets that find it full (tc-bfifo(8)). Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.queues.discipline import Discipline
from linklab.schema.rows import Table


@dataclass(frozen=True, slots=True)
class DropTail:
    """Has no settings, besides the link's queue size."""


DISCIPLINE: Final = Discipline(
    "drop-tail",
    "bfifo",
    Table(DropTail, (), about="Packets that find the queue full are dropped."),
    options=lambda settings, queue_bytes: struct.pack("=I", queue_bytes),
)
