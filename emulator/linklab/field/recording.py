"""Reads the recording of a real download that `multilink get --run-dir` wrote."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import msgspec.structs

from linklab.core import records
from linklab.core.algorithms import TABLE
from linklab.core.bounded import ByName, Bytes, Few, Figure, Name, Nanoseconds, Rate
from linklab.core.errors import LinklabError
from linklab.core.limits import MAX_TIME_S
from linklab.core.records import ClientRecord, RecordError, Tail
from linklab.field import link_history
from linklab.field.link_history import LinkHistory
from linklab.runs import clients
from linklab.runs.run_figures import ClientSummary
from linklab.scenario import ClientSettings

EVENTS_FILE: Final = "client.jsonl"
SUMMARY_FILE: Final = "client.json"

_LATE_S: Final = 0.1
"""How much earlier than the event before it an event may be. Several threads write events."""


class RecordingError(LinklabError, ValueError):
    """The directory or file is no recording. The message says which, why and what is needed."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded download; captures only record what the links carried.

    Attributes:
        contestant: the client that does the same in the lab; "" if unknown.
        size_bytes: size of the file; 0 if unknown.
        bandwidths_bps: link capacities that the algorithm was given.
        notes: what was corrected while reading.
    """

    source: str
    contestant: str
    is_complete: bool
    length_s: float
    size_bytes: int
    histories: tuple[LinkHistory, ...]
    client: ClientSettings
    bandwidths_bps: Mapping[str, float]
    notes: tuple[str, ...] = ()


def require_length(source: str, length_s: float) -> None:
    """Raises RecordingError if a recording is longer than a scenario can be.

    Readers call it before they take steps through the recording's time. A few packets with wrong
    stamps can be years apart.
    """
    if length_s > MAX_TIME_S:
        raise RecordingError(
            f"{source}: lasts {length_s:.0f} s by its stamps; allowed: up to {MAX_TIME_S:.0f} s, the latest "
            "time of a scenario. Was a clock set meanwhile? Cut the recording there"
        )


class _Device(msgspec.Struct, frozen=True):
    link: Name
    device: Name


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options that are no keys of a scenario's `client`."""

    bandwidth_bps: ByName[Rate] = {}
    rescue: bool = False


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of `client.jsonl`."""

    algorithm: Name
    links: Annotated[list[_Device], Few]
    options: _Options


def _recorded(setting: str, default: float) -> tuple[str, object, float]:
    """Returns the recorded option of a client setting: name, type and default.

    multilink records seconds as nanoseconds.
    """
    quantity, _, unit = setting.rpartition("_")
    if unit == "s":
        return f"{quantity}_ns", Nanoseconds, round(default * 1e9)
    return setting, Bytes if unit == "bytes" else Figure, default


_SETTINGS_START: Final = msgspec.defstruct(
    "_SettingsStart",
    [
        (
            "options",
            msgspec.defstruct(
                "_Settings",
                [_recorded(*one) for one in dataclasses.asdict(ClientSettings()).items()],
            ),
        )
    ],
)
"""The first line of `client.jsonl`, with the options that are settings of the client.

Settings that it does not record have their defaults.
"""


def _settings(start: Any) -> ClientSettings:
    """Returns the client's settings that a `_SETTINGS_START` holds."""
    recorded: list[Any] = list(msgspec.structs.astuple(start.options))
    settings = dataclasses.fields(ClientSettings)
    return ClientSettings(
        **{
            one.name: value / 1e9 if one.name.endswith("_s") else value
            for one, value in zip(settings, recorded, strict=True)
        }
    )


def is_in(directory: Path) -> bool:
    """Tells whether multilink wrote a recording there."""
    return os.path.lexists(directory / EVENTS_FILE) or os.path.lexists(directory / SUMMARY_FILE)


def read(directory: Path) -> Recording:
    """Reads the recording in a directory, of the lab or of hardware. Raises RecordingError."""
    for name in (EVENTS_FILE, SUMMARY_FILE):
        if not os.path.lexists(directory / name):
            raise RecordingError(
                f"{directory}: has no {name}; needed: what `multilink get --run-dir` leaves when it "
                f"ends, {EVENTS_FILE} and {SUMMARY_FILE}"
            )
    try:
        summary = records.document(directory / SUMMARY_FILE, ClientSummary)
        events = Tail(directory, ClientRecord).read()
        start = records.first_line(directory / EVENTS_FILE, _Start)
        client = _settings(records.first_line(directory / EVENTS_FILE, _SETTINGS_START))
    except RecordError as error:
        raise RecordingError(str(error)) from error
    except OSError as error:
        raise RecordingError(f"{directory}: cannot be read: {error}") from error
    _check_order(directory, events)
    length_s = summary.download_ns / 1e9
    if length_s <= 0 or not any(one.event == "sample" for one in events):
        raise RecordingError(
            f"{directory}: the download ended before anything was sampled; needed: one of a second "
            "or more"
        )
    require_length(str(directory), length_s)
    resumed = sum(one.resumed_bytes for one in events if one.event == "size")
    peaks = {name: link.peak_bps for name, link in summary.links.items() if link.peak_bps}
    return Recording(
        source=str(directory),
        contestant=_contestant(start),
        is_complete=summary.outcome == "complete" and events[-1].event == "done",
        length_s=length_s,
        size_bytes=max(0, summary.size_bytes - resumed),
        histories=tuple(
            link_history.of_records(events, one.link, one.device, length_s) for one in start.links
        ),
        client=client,
        bandwidths_bps={**peaks, **start.options.bandwidth_bps},
    )


def _check_order(directory: Path, events: Sequence[ClientRecord]) -> None:
    """Raises RecordingError if events are of several downloads, or not in order of time."""
    file = directory / EVENTS_FILE
    for line, (before, one) in enumerate(itertools.pairwise(events), 2):
        if one.event == "start":
            raise RecordingError(
                f"{file}:{line}: a second download begins; allowed: one in a directory"
            )
        if one.t_s < before.t_s - _LATE_S:
            raise RecordingError(
                f"{file}:{line}: {one.t_s:.6g} s comes after {before.t_s:.6g} s; allowed: events in "
                "order of time, as the client writes them"
            )


def _contestant(start: _Start) -> str:
    """Returns the client that does in the lab what multilink did; "" if there is none."""
    links = [one.link for one in start.links]
    wanted = [f"{start.algorithm}-{links[0]}"]
    # Earlier versions of multilink had rescue with every algorithm, which nobody in the lab has.
    if any((one.name, one.rescue) == (start.algorithm, start.options.rescue) for one in TABLE):
        wanted.append(start.algorithm)
    known = clients.names(links)
    return next((name for name in wanted if name in known), "")
