"""Defines the description that each format of recorded traces gives in its file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from linklab.traces.trace import TraceFile

ENDS: Final = ("client", "server")
"""The ends of a measurement. Either may have been the phone."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options for reading a file.

    Attributes:
        format: name of the format; None to detect it.
        uplink: recording of the uplink, if that is a separate file.
        bin_s: length of a sample (0.001 to 3600 s, whole ms).
        opportunity_bytes: bytes of an opportunity (1 to 65535).
        every_s: seconds between two probes of a log without times (0.001 to 3600).
        only: values of columns by which a recording is chosen of those in a file.
        device: the end of the measurement that was the phone, one of `ENDS`.
        keep: which of up, rtt and loss are kept; None for the format's default.
        licence: licence of the source.
    """

    format: str | None = None
    uplink: Path | None = None
    bin_s: float | None = None
    opportunity_bytes: int | None = None
    every_s: float | None = None
    only: Mapping[str, str] | None = None
    device: str | None = None
    keep: Collection[str] | None = None
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recorded traces.

    Attributes:
        looks: describes a file of this format for people.
        begins: tells whether a file has this format by its first line that is neither empty nor a
            comment.
        read: opens a recording. It gets the file, the name for errors, the options, and whether
            only the uplink is needed. It raises TraceError.
        keeps: which of up, rtt and loss are kept by default.
        takes: fields of `Options` that this format takes, and some others do not.
    """

    name: str
    looks: str
    begins: Callable[[str], bool]
    read: Callable[[BinaryIO, str, Options, bool], TraceFile]
    keeps: frozenset[str]
    takes: frozenset[str] = frozenset()
