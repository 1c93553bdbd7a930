"""Makes a scenario of recordings: for each link a trace, interruptions, spread, and notes. Pure."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from linklab.core import units
from linklab.core.errors import LinklabError
from linklab.core.limits import MAX_RATE_BPS, MIN_LENGTH_S, MIN_RATE_BPS
from linklab.core.link_kinds import LinkKind, devices, in_order
from linklab.field import capacity
from linklab.field.capacity import CARRIER, HELD, LONG_S, LOST, Break, Capacity, CapacityStep
from linklab.field.link_history import LinkHistory
from linklab.field.recording import Recording
from linklab.models.between_runs import MAX_RELATIVE_SD, BetweenRunsSettings
from linklab.models.events import Event
from linklab.models.trace import Trace, TraceSettings
from linklab.scenario import LinkSettings, Payload, Scenario, default_queue_bytes
from linklab.traces.trace import NS_PER_S, TraceSample

_ROUNDED_BPS: Final = 10_000
"""The resolution of a step's rate."""

_AFTERWARDS: Final = (1.0, 5)
"""The step after a recording: its length in seconds, and the number of last steps whose mean rate it has.
The link keeps that rate."""


_LOSING: Final = 0.5
"""The share of an interruption with losses in which the lab drops packets. After that it holds them
until the end.

A sender doubles its wait before each retry (RFC 6298 5.5). So one retry falls into the second half,
and arrives when the recorded one did.

If the recording ended during the interruption, the lab drops packets until then and holds none. The
link returns at the earliest time that the recording allows. The sender behaves the same for any
return before its next retry, up to twice the observed silence."""


class MakingError(LinklabError, ValueError):
    """No scenario can be made of the recordings. The message says why and what is needed."""


@dataclass(frozen=True, slots=True)
class RecordedLink:
    recording: Recording
    history: LinkHistory
    capacity: Capacity


@dataclass(frozen=True, slots=True)
class Made:
    """A made scenario.

    Attributes:
        traces: by file name beside the scenario. Its links play the first trace of each link.
        notes: what the recordings do not tell.
    """

    scenario: Scenario
    traces: Mapping[str, tuple[TraceSample, ...]]
    notes: tuple[str, ...]


def links_of(recordings: Iterable[Recording]) -> dict[str, list[RecordedLink]]:
    """Returns each link with the recordings that used it. Raises MakingError if none did."""
    found: dict[str, list[RecordedLink]] = {}
    unused: dict[str, str] = {}
    for recording in recordings:
        for history in recording.histories:
            try:
                known = capacity.of_history(history, recording.length_s)
            except capacity.CapacityError as error:
                unused[history.link] = f"{recording.source}: link {history.link}: {error}"
            else:
                found.setdefault(history.link, []).append(RecordedLink(recording, history, known))
    for link, why in unused.items():
        if link not in found:
            raise MakingError(
                f"{why}; needed: a recording that uses it too, as `multilink probe` makes one"
            )
    return found


def scenario(name: str, recordings: Sequence[Recording], kinds: Mapping[str, LinkKind]) -> Made:
    """Makes a scenario of recordings; `kinds` has each link's kind. Raises MakingError."""
    links = links_of(recordings)
    base = _base(recordings, links)
    played = {
        link: next((one for one in seen if one.recording is base), None) or _typical(seen)
        for link, seen in links.items()
    }
    names = in_order({link: kinds[link] for link in links})
    named = dict(zip(names, devices(kinds[link] for link in names), strict=True))
    traces: dict[str, tuple[TraceSample, ...]] = {}
    settings: dict[str, LinkSettings] = {}
    for link in names:
        file = f"{name}-{link}.csv"
        one = played[link]
        traces[file] = _samples(one.capacity, one.recording.length_s, lasting=(HELD,))
        others = (seen for seen in links[link] if seen is not one)
        for number, other in enumerate(others, 2):
            traces[f"{name}-{link}-{number}.csv"] = _samples(
                other.capacity, other.recording.length_s, lasting=(HELD, LOST, CARRIER)
            )
        settings[link] = _link(kinds[link], named[link], Path(file), traces[file], one, links[link])
    size_bytes = base.size_bytes or sum(history.carried_bytes for history in base.histories)
    notes = tuple(_notes(recordings, links, played, settings))
    return Made(
        scenario=Scenario(
            name=name,
            title=f"Recorded: {', '.join(names)}",
            description=" ".join(notes),
            payload=Payload(size_bytes),
            links=settings,
            events=tuple(
                event for link in names for event in _events(link, played[link].capacity.breaks)
            ),
            client=base.client,
        ),
        traces=traces,
        notes=notes,
    )


def _base(
    recordings: Sequence[Recording], links: Mapping[str, Sequence[RecordedLink]]
) -> Recording:
    """Chooses the recording that the scenario plays.

    Of the recordings with the most links, it is the median by capacity.
    """
    rates: dict[int, list[float]] = {}
    for one in (one for seen in links.values() for one in seen):
        rates.setdefault(id(one.recording), []).append(one.capacity.mean_bps())
    most = max(map(len, rates.values()))
    full = [one for one in recordings if len(rates.get(id(one), ())) == most]
    return sorted(full, key=lambda one: sum(rates[id(one)]))[(len(full) - 1) // 2]


def _typical(seen: Sequence[RecordedLink]) -> RecordedLink:
    """Returns the median recording by the link's mean rate; the lower one of two."""
    return sorted(seen, key=lambda one: one.capacity.mean_bps())[(len(seen) - 1) // 2]


def _link(
    kind: LinkKind,
    device: str,
    file: Path,
    samples: tuple[TraceSample, ...],
    one: RecordedLink,
    all_seen: Sequence[RecordedLink],
) -> LinkSettings:
    known = one.capacity
    mean_bps = min(max(round(known.mean_bps()), MIN_RATE_BPS), MAX_RATE_BPS)
    peak_bps = min(max(sample.down_bps or 0 for sample in samples), MAX_RATE_BPS)
    rates = TraceSettings(end="hold")
    models: tuple[object, ...] = (Trace(file, samples, rates),)
    spread = _spread(all_seen)
    if spread:
        models = (*models, BetweenRunsSettings(spread))
    queue_bytes = _queue_bytes([known, *(other.capacity for other in all_seen)], peak_bps)
    return LinkSettings(
        kind=kind,
        device=device,
        down_rate_bps=mean_bps,
        up_rate_bps=mean_bps,
        rtt_s=round(known.base_rtts[0][1], 6) if known.base_rtts else 0.0,
        queue_down_bytes=queue_bytes,
        queue_up_bytes=queue_bytes,
        bandwidth_bps=round(one.recording.bandwidths_bps.get(one.history.link, 0)) or peak_bps,
        models=models,
    )


def _queue_bytes(known: Sequence[Capacity], peak_bps: int) -> int:
    """Returns the size of the first queue that overflowed, else a size above all observed ones."""
    overflowed = next((one.queue_bytes for one in known if one.overflowed), None)
    longest = max(one.queue_bytes for one in known)
    return overflowed or max(default_queue_bytes(peak_bps), round(1.25 * longest))


def _spread(seen: Sequence[RecordedLink]) -> float:
    """Returns the relative standard deviation of the recordings' means, up to the lab's limit."""
    if len(seen) < 2:
        return 0.0
    means = [one.capacity.mean_bps() for one in seen]
    return min(round(stdev(means) / fmean(means), 4), MAX_RELATIVE_SD)


def _samples(known: Capacity, length_s: float, lasting: Sequence[str]) -> tuple[TraceSample, ...]:
    """Makes a trace of the steps.

    The capacity is 0 in interruptions of the kinds in `lasting`, and in the last part of those
    that lost packets.
    """
    dark = [
        one if one.kind in lasting else replace(one, start_s=_lost_until_s(one))
        for one in known.breaks
        if one.kind in lasting or one.kind == LOST
    ]
    has_rtts = len(known.base_rtts) > 1
    cuts = sorted(
        {
            round(at_s, 3)
            for at_s in (
                *(one.start_s for one in known.steps),
                length_s,
                *(edge for one in dark for edge in (one.start_s, one.end_s)),
                *(at_s for at_s, _ in known.base_rtts),
            )
            if 0 <= at_s <= length_s
        }
    )
    samples: list[TraceSample] = []
    for begin_s, end_s in itertools.pairwise(cuts):
        middle_s = (begin_s + end_s) / 2
        is_dark = any(one.start_s <= middle_s < one.end_s for one in dark)
        rate_bps = 0 if is_dark else _rounded(_rate_bps(known.steps, begin_s, end_s))
        rtt_s = _rtt_s(known, middle_s) if has_rtts else None
        sample = TraceSample(round((end_s - begin_s) * NS_PER_S), rate_bps, rtt_s=rtt_s)
        samples.append(sample)
    seconds, count = _AFTERWARDS
    last_bps = fmean(one.rate_bps for one in known.steps[-count:])
    samples.append(
        TraceSample(
            round(seconds * NS_PER_S),
            _rounded(last_bps),
            rtt_s=known.base_rtts[-1][1] if has_rtts else None,
        )
    )
    return tuple(_joined(samples))


def _rounded(rate_bps: float) -> int:
    return min(round(rate_bps / _ROUNDED_BPS) * _ROUNDED_BPS, MAX_RATE_BPS)


def _rate_bps(steps: Sequence[CapacityStep], begin_s: float, end_s: float) -> float:
    """Returns the mean rate over a time. The steps are in order."""
    first = bisect.bisect_right(steps, begin_s, key=lambda one: one.end_s)
    last = bisect.bisect_left(steps, end_s, key=lambda one: one.start_s)
    bits = sum(
        one.rate_bps * max(0.0, min(end_s, one.end_s) - max(begin_s, one.start_s))
        for one in steps[first:last]
    )
    return bits / (end_s - begin_s)


def _rtt_s(known: Capacity, at_s: float) -> float:
    return [rtt_s for since_s, rtt_s in known.base_rtts if since_s <= at_s][-1]


def _joined(samples: Iterable[TraceSample]) -> list[TraceSample]:
    """Returns the samples; equal neighbours become one."""
    found: list[TraceSample] = []
    for one in samples:
        if found and replace(one, length_ns=0) == replace(found[-1], length_ns=0):
            found[-1] = replace(one, length_ns=found[-1].length_ns + one.length_ns)
        else:
            found.append(one)
    return found


def _lost_until_s(one: Break) -> float:
    share = _LOSING if one.has_ended else 1.0
    return one.start_s + share * (one.end_s - one.start_s)


def _events(link: str, breaks: Sequence[Break]) -> list[Event]:
    """Returns events for the times in which packets were lost or the carrier was down."""
    events = []
    before_s = -1.0
    for one in breaks:
        start_s = max(round(one.start_s, 3), before_s + MIN_LENGTH_S)
        end_s = _lost_until_s(one) if one.kind == LOST else one.end_s
        length_s = round(end_s - start_s, 3)
        if one.kind == HELD or length_s < MIN_LENGTH_S:
            continue
        before_s = start_s
        event = Event(link, at_s=start_s, duration_s=length_s)
        gone = {"carrier": "down"} if one.kind == CARRIER else {"outage": True}
        events.append(replace(event, **gone))
    return events


def _notes(
    recordings: Sequence[Recording],
    links: Mapping[str, Sequence[RecordedLink]],
    played: Mapping[str, RecordedLink],
    settings: Mapping[str, LinkSettings],
) -> Iterable[str]:
    for recording in recordings:
        yield from recording.notes
    for link, seen in links.items():
        one = played[link]
        known, length_s = one.capacity, one.recording.length_s
        if known.filled_s < 0.9 * length_s:
            yield (
                f"{link} was used up for {known.filled_s:.1f} of {length_s:.1f} s: what it could "
                "carry at other times is taken from those beside them."
            )
        if known.unfilled_s > LONG_S:
            yield (
                f"{link} carried data without a queue for {known.unfilled_s:.1f} s"
                f"{_losses(one.history)}: it could perhaps carry more then, over several connections "
                "or from another server."
            )
        if not any(other.capacity.overflowed for other in seen):
            size = units.format_size(settings[link].queue_down_bytes)
            yield f"No queue of {link} was seen to overflow: {size} is an assumption."
        if one.capacity.breaks:
            yield f"{link} broke off: {', '.join(map(_break_note, known.breaks))}."
        if not all(one.has_ended for one in known.breaks):
            yield (
                f"{link} was not back when the recording ended: it is taken to be back then. A download "
                "that waits for it takes longer by as long as it stayed away, and until TCP tries again."
            )
        if len(seen) > 1:
            yield _spread_note(link, seen, one)
    if len(links) == 1:
        yield (
            "Only one link was recorded: the effect of another one is not known; a recording "
            "of it may be given beside this one."
        )
    cut = [one.source for one in recordings if not one.is_complete]
    if cut:
        yield f"Not complete: {', '.join(cut)}. What links could carry after its end is not known."
    yield (
        "A download does not show what went up: the uplinks are taken to be as fast as the downlinks."
    )


def _losses(history: LinkHistory) -> str:
    last = history.samples[-1]
    if not last.out_of_order:
        return ""
    return f", and {last.out_of_order} packets came behind lost ones"


def _break_note(one: Break) -> str:
    what = {HELD: "packets waited", LOST: "packets were lost", CARRIER: "its device was gone"}
    return f"{one.start_s:.2f} to {one.end_s:.2f} s ({what[one.kind]})"


def _spread_note(link: str, seen: Sequence[RecordedLink], played: RecordedLink) -> str:
    means = ", ".join(f"{one.capacity.mean_bps() / 1e6:.2f}" for one in seen)
    spread = _spread(seen)
    capped = " (the most that the lab plays)" if math.isclose(spread, MAX_RELATIVE_SD) else ""
    return (
        f"{link} had means of {means} Mbit/s in {len(seen)} recordings: that with "
        f"{played.capacity.mean_bps() / 1e6:.2f} is played, and runs differ by "
        f"{units.format_ratio(spread)}{capped}."
    )
