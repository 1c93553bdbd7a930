"""What a format of recorded traces says of itself in its file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from linklab.traces.trace import TraceFile

ENDS: Final = ("client", "server")
"""The ends of a measurement, either of which may have been the phone."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is read.

    `format` is the name of one, None to tell it from the file. `uplink` is the recording of the
    uplink where that is a file of its own, `light` CellReplay's light trace for the RTT. Delivery
    opportunities are counted in bins of `bin_s` (0.001 to 3600 s, whole ms); one is
    `opportunity_bytes` (1 to 65535). `device` is the end that the phone was, one of `ENDS`. `keep`
    names what of up, rtt and loss is kept, None for what the format keeps. `licence` is that of
    the source.
    """

    format: str | None = None
    uplink: Path | None = None
    light: Path | None = None
    bin_s: float | None = None
    opportunity_bytes: int | None = None
    device: str | None = None
    keep: Collection[str] | None = None
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    `looks` tells people what a file looks like. `begins` tells whether the first line that is
    neither empty nor a comment is one of this format; it gets the line and the place that an error
    names, and raises TraceError for a file that is never a trace. `read` opens a recording from a
    file, the name for errors, the options, and whether only the uplink is wanted; it raises
    TraceError. `keeps` names what of up, rtt and loss is kept unless the options say otherwise.
    `takes` names the fields of `Options` that not every format takes.
    """

    name: str
    looks: str
    begins: Callable[[str, str], bool]
    read: Callable[[BinaryIO, str, Options, bool], TraceFile]
    keeps: frozenset[str]
    takes: frozenset[str] = frozenset()
