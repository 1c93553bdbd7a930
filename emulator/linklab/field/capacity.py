"""Estimates a link's capacity from a download: rate over time, interruptions, delay, queue. Pure.

A download shows a link's capacity while the link has a queue. Then round trips are longer than
without queues, and the arrival rate is the capacity.

Without a queue the link could have carried more: a connection still speeds up, has just lost
packets, or waits for a response. Such times get the capacity observed before and after them.

If bodies arrive for longer than `LONG_S` without a pause and without a queue, the limit is
elsewhere, such as losses or the server. Then the observed rate is used, because nothing tells the
capacity.

TCP delivers bytes in order. After a loss nothing arrives, and then a burst. Such a gap with its
burst counts as an even rate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.frames import FRAME_BYTES
from linklab.field.link_history import Connection, LinkHistory, LinkProgress, covered_s

LONG_S: Final = 1.0
"""A rate below capacity that lasts no longer is a passing state of the connection."""

_BREAK_S: Final = 0.3
"""A silence of this length is an interruption, if it also lasts two round trips."""

_QUEUED: Final = (0.002, 0.1)
"""A link has a queue if its delay exceeds both: seconds, and a share of the base round trip."""

_BURST: Final = 1.25
_GAP: Final = 0.9
"""A rate above or below this share of the surrounding level may be a burst or the gap before it."""

_TRICKLE: Final = 0.02
"""A rate below this share of the usual rate counts as nothing."""

HELD, LOST, CARRIER = "held", "lost", "carrier"


@dataclass(frozen=True, slots=True)
class CapacityStep:
    """The capacity from `start_s` to `end_s`, in frames with their headers.

    `is_seen` is True if the link was saturated then. Otherwise the rate comes from other times.
    """

    start_s: float
    end_s: float
    rate_bps: float
    is_seen: bool


@dataclass(frozen=True, slots=True)
class Break:
    """An interruption: nothing arrived until `end_s` although the client waited.

    Attributes:
        kind: `held`: packets in flight arrived afterwards. `lost`: packets sent from `start_s` on
            never arrived; the link may have returned before the sender's next try. `carrier`: the
            client saw the link go down and come back.
        has_ended: False if the recording ended during the interruption.
    """

    start_s: float
    end_s: float
    kind: str
    has_ended: bool = True


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of a link during a recording.

    Attributes:
        steps: consecutive, from 0 to the end of the recording.
        base_rtts: pairs of a time and the round trip without queues from then on.
        queue_bytes: the longest queue observed.
        overflowed: packets were lost at that queue length.
        filled_s: time in which the link was saturated.
        unfilled_s: time in which the link was used without a queue for longer than `LONG_S`.
    """

    steps: tuple[CapacityStep, ...]
    breaks: tuple[Break, ...]
    base_rtts: tuple[tuple[float, float], ...]
    queue_bytes: int
    overflowed: bool
    filled_s: float
    unfilled_s: float

    def mean_bps(self) -> float:
        """Returns the mean rate over the recording. Interruptions do not lower it."""
        length_s = sum(one.end_s - one.start_s for one in self.steps)
        return sum(one.rate_bps * (one.end_s - one.start_s) for one in self.steps) / length_s


class CapacityError(LinklabError, ValueError):
    """A history does not show the link's capacity. The message says why."""


FULL, PART, QUIET, IDLE = "full", "part", "quiet", "idle"


@dataclass(slots=True)
class _Bin:
    """The time between two samples.

    `rate_bps` is the rate while bodies arrived. `queue_bytes` are the bytes that arrived while the
    last packet waited in the queue.
    """

    start_s: float
    end_s: float
    bytes: int
    rate_bps: float
    state: str
    queued_s: float
    queue_bytes: float
    base_rtt_s: float
    has_losses: bool
    is_steady: bool

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def of_history(history: LinkHistory, end_s: float) -> Capacity:
    """Estimates a link's capacity until `end_s`.

    Raises CapacityError if the link carried nothing, or everything at one moment.
    """
    if not history.carried_bytes:
        raise CapacityError("it carried nothing, so what it could carry is not known")
    bins = _bins(history)
    if not bins:
        raise CapacityError("it was seen at one moment, so what it could carry is not known")
    overflowed = _overflowed(bins) if history.is_exact else _even_out(bins)
    breaks = _breaks(bins, history, end_s)
    _demote(bins)
    queue_bytes = max(round(one.queue_bytes) for one in bins)
    unfilled_s = sum(_length_s(run) for run in _unfilled(bins))
    return Capacity(
        steps=_steps(bins, end_s),
        breaks=breaks,
        base_rtts=_base_rtts(bins, history.connections),
        queue_bytes=queue_bytes,
        overflowed=overflowed,
        filled_s=sum(one.length_s for one in bins if one.state == FULL),
        unfilled_s=unfilled_s,
    )


def _bins(history: LinkHistory) -> list[_Bin]:
    begin_s = history.coming[0][0] if history.coming else history.samples[0].t_s
    first = LinkProgress(min(begin_s, history.samples[0].t_s), 0, 0.0, 0.0, 0)
    bins = []
    for before, after in itertools.pairwise((first, *history.samples)):
        if after.t_s > before.t_s:
            bins.append(_bin(history, before, after))
    return bins


def _bin(history: LinkHistory, before: LinkProgress, after: LinkProgress) -> _Bin:
    start_s, end_s = before.t_s, after.t_s
    count = after.carried_bytes - before.carried_bytes
    coming_s = covered_s(history.coming, start_s, end_s)
    queued_s = max(0.0, after.rtt_s - after.base_rtt_s) if after.base_rtt_s else 0.0
    at_least_s, share = _QUEUED
    patience_s = max(LONG_S, 3 * after.rtt_s)
    given_away = any(0 <= end_s - at_s <= patience_s for at_s in history.given_away_s)
    rate_bps, state = 0.0, IDLE
    if count:
        if history.is_exact and (given_away or not history.coming):
            coming_s = end_s - start_s
        rate_bps = count * 8 / max(coming_s, 0.3 * (end_s - start_s))
        is_full = queued_s > max(at_least_s, share * after.base_rtt_s)
        enough = coming_s >= 0.3 * (end_s - start_s)
        state = (FULL if is_full else PART) if enough else IDLE
    elif covered_s(history.asked, start_s, end_s) >= 0.5 * (end_s - start_s):
        state = IDLE if given_away else QUIET
    return _Bin(
        start_s,
        end_s,
        count,
        rate_bps,
        state,
        queued_s,
        history.carried_between(end_s - queued_s, end_s) if queued_s else 0.0,
        after.base_rtt_s,
        after.out_of_order > before.out_of_order,
        any(at <= start_s and end_s <= to and to - at > LONG_S for at, to in history.coming),
    )


def _level_bps(bins: Sequence[_Bin], at_s: float, within_s: float = LONG_S) -> float:
    """Returns the median rate of the bins around a time: saturated ones if any; 0 if none."""
    for states in ((FULL,), (FULL, PART)):
        rates = [
            one.rate_bps
            for one in bins
            if one.state in states and one.end_s > at_s - within_s and one.start_s < at_s + within_s
        ]
        if rates:
            return median(rates)
    return 0.0


def _breaks(bins: list[_Bin], history: LinkHistory, end_s: float) -> tuple[Break, ...]:
    """Finds the interruptions, and marks their bins as idle.

    The bins before and after a silence also cover a part of it. Their rates are corrected for that.
    """
    found: list[Break] = _first_wait(history)
    _ignore_trickles(bins)
    for first, last in _runs(bins, lambda one: one.state == QUIET):
        silence = bins[first : last + 1]
        before = bins[first - 1] if first else None
        after = next((one for one in bins[last + 1 :] if one.bytes), None)
        if _length_s(silence) < max(_BREAK_S, 2 * silence[0].base_rtt_s):
            continue
        if after is None and _length_s(silence) < LONG_S:
            _idle(silence)
            continue
        begin_s = silence[0].start_s
        if before is not None and before.rate_bps:
            level = _level_bps(bins[:first], before.start_s) or before.rate_bps
            begin_s = before.start_s + before.length_s * min(1.0, before.rate_bps / level)
            before.rate_bps = max(before.rate_bps, level)
        resumed_s = end_s
        if after is not None:
            level = _level_bps(bins[bins.index(after) + 1 :], after.end_s) or after.rate_bps
            resumed_s = after.end_s - after.length_s * min(1.0, after.rate_bps / level)
            after.rate_bps = max(after.rate_bps, level)
        found.append(_break(begin_s, resumed_s, bins[first:], history, after is None))
        _idle(silence)
    return tuple(sorted(found, key=lambda one: one.start_s))


def _ignore_trickles(bins: Sequence[_Bin]) -> None:
    """Marks bins with one or two packets within a silence as part of it."""
    usual = median([one.rate_bps for one in bins if one.bytes])
    for before, one in itertools.pairwise(bins):
        is_trickle = one.bytes <= 2 * FRAME_BYTES and one.rate_bps < _TRICKLE * usual
        if one.state in (FULL, PART) and is_trickle and before.state == QUIET:
            one.state = QUIET


def _first_wait(history: LinkHistory) -> list[Break]:
    """Returns the wait of the first connection if it was long, such as for a sleeping radio."""
    if not history.connections:
        return []
    first = history.connections[0]
    rtt_s = min((one.base_rtt_s for one in history.samples if one.base_rtt_s), default=first.tcp_s)
    if first.tcp_s < 1.5 * rtt_s + 0.02:
        return []
    return [Break(first.dialled_s, first.dialled_s + first.tcp_s, HELD)]


def _break(
    begin_s: float, resumed_s: float, bins: Sequence[_Bin], history: LinkHistory, is_last: bool
) -> Break:
    """Classifies a silence between the last arrival before it and the first after it."""
    made = [one for one in history.connections if begin_s < one.ready_s <= resumed_s + 0.05]
    told = [at_s for at_s, _ in history.failures if begin_s <= at_s <= resumed_s]
    if made and not told:
        return Break(begin_s, made[-1].dialled_s, CARRIER)
    after = [one.queued_s for one in bins if one.start_s < resumed_s + 0.3]
    silent_s = resumed_s - begin_s
    waited = any(begin_s < at_s <= resumed_s + 0.1 for at_s in history.held_s)
    waited |= max(after) - bins[0].queued_s > 0.05 * silent_s
    if waited and not made and not is_last:
        return Break(begin_s, resumed_s, HELD)
    # Packets that had passed the link's far end before the losses began still arrived.
    lost_s = max(0.0, begin_s - bins[0].queued_s - bins[0].base_rtt_s / 2)
    if made:
        return Break(lost_s, made[-1].dialled_s + made[-1].tcp_s, LOST)
    return Break(lost_s, resumed_s, LOST, has_ended=not is_last)


def _idle(bins: Sequence[_Bin]) -> None:
    for one in bins:
        one.state = IDLE


def _overflowed(bins: Sequence[_Bin]) -> bool:
    """Tells whether packets were lost only while the queue was long, or after a silence."""
    longest = max(one.queue_bytes for one in bins)
    full_s, silent_s, found = -LONG_S, -LONG_S, False
    for before, after in itertools.pairwise(bins):
        if before.state == QUIET:
            silent_s = before.end_s
        if not after.has_losses:
            continue
        if max(before.queue_bytes, after.queue_bytes) > 0.8 * longest:
            full_s, found = after.end_s, True
        elif after.start_s > max(full_s, silent_s) + LONG_S:
            return False
    return found


def _even_out(bins: list[_Bin]) -> bool:
    """Spreads bursts over the gaps before them, and tells whether a gap came with a long queue."""
    overflowed = False
    longest_s = max(one.queued_s for one in bins)
    levels = [_level_bps([*bins[:n], *bins[n + 1 :]], one.start_s) for n, one in enumerate(bins)]
    bursts = [
        one.state in (FULL, PART) and 0 < _BURST * level < one.rate_bps
        for one, level in zip(bins, levels, strict=True)
    ]
    for is_burst, group in itertools.groupby(range(len(bins)), key=bursts.__getitem__):
        run = list(group)
        if not is_burst:
            continue
        first, last = run[0], run[-1]
        level = levels[first]
        patience_s = LONG_S + 2 * (
            bins[last].base_rtt_s + max(b.queued_s for b in bins[: last + 1])
        )
        while (
            first > 0
            and _mean_bps(bins[first : last + 1]) > level
            and bins[first - 1].state in (FULL, PART, QUIET)
            and bins[first - 1].rate_bps < _GAP * level
            and bins[last].end_s - bins[first - 1].start_s <= patience_s
        ):
            first -= 1
        if first == run[0]:
            continue
        mean = _mean_bps(bins[first : last + 1])
        queued_s = max(one.queued_s for one in bins[max(0, first - 1) : run[0]])
        overflowed |= queued_s > 0.8 * longest_s
        for one in bins[first : last + 1]:
            one.rate_bps, one.state = mean, FULL
    for one in bins:
        one.queue_bytes = one.queued_s * one.rate_bps / 8
    return overflowed


def _mean_bps(bins: Sequence[_Bin]) -> float:
    return sum(one.rate_bps * one.length_s for one in bins) / _length_s(bins)


def _length_s(bins: Sequence[_Bin]) -> float:
    return sum(one.length_s for one in bins)


def _demote(bins: list[_Bin]) -> None:
    """Marks the first bin with a queue as not saturated, because it began without one."""
    for before, after in itertools.pairwise([None, *(replace(one) for one in bins)]):
        if after is not None and after.state == FULL and (before is None or before.state == PART):
            index = next(i for i, one in enumerate(bins) if one.start_s == after.start_s)
            bins[index].state = PART


def _runs(bins: Sequence[_Bin], wanted: Callable[[_Bin], bool]) -> list[tuple[int, int]]:
    """Returns the first and last index of each run of wanted bins."""
    runs = []
    for is_wanted, group in itertools.groupby(enumerate(bins), key=lambda pair: wanted(pair[1])):
        if is_wanted:
            indices = [index for index, _ in group]
            runs.append((indices[0], indices[-1]))
    return runs


def _unfilled(bins: Sequence[_Bin]) -> list[Sequence[_Bin]]:
    """Returns the runs of bins without a queue that are longer than `LONG_S`."""
    found = []
    for first, last in _runs(bins, lambda one: one.state == PART and one.is_steady):
        run = bins[first : last + 1]
        if not first or not any(one.bytes for one in bins[:first]):
            run = _after_ramp(run)
        if _length_s(run) > LONG_S:
            found.append(run)
    return found


def _after_ramp(run: Sequence[_Bin]) -> Sequence[_Bin]:
    """Returns the run from the first bin on that is near the run's usual rate."""
    usual = median([one.rate_bps for one in run])
    first = next(index for index, one in enumerate(run) if one.rate_bps >= 0.8 * usual)
    return run[first:]


def _bursts(bins: Sequence[_Bin]) -> dict[int, float]:
    """Returns the rates, by index of the bin, of bodies that arrived between pauses without a queue.

    A rate is the maximum of the bins around it, because a connection may still speed up.
    """
    full = [one.start_s for one in bins if one.state == FULL]
    found = {}
    for index, one in enumerate(bins):
        near = any(abs(at_s - one.start_s) <= LONG_S for at_s in full)
        if one.state == PART and not one.is_steady and not near:
            around = bins[max(0, index - 2) : index + 3]
            found[index] = max(other.rate_bps for other in around if other.state == PART)
    return found


def _steps(bins: Sequence[_Bin], end_s: float) -> tuple[CapacityStep, ...]:
    as_seen = {id(one) for run in _unfilled(bins) for one in run}
    known = _bursts(bins)
    for index, one in enumerate(bins):
        if one.state in (FULL, QUIET) or id(one) in as_seen:
            known[index] = one.rate_bps
    if not known:
        return (CapacityStep(0.0, end_s, max(one.rate_bps for one in bins), False),)
    indices = sorted(known)
    rates = [known[index] for index in indices]
    steps: list[CapacityStep] = []
    at_s = 0.0
    for number, index in enumerate(indices):
        one = bins[index]
        if one.start_s > at_s + 1e-9:
            steps += _filled(bins, rates, number, at_s, min(one.start_s, end_s))
        if one.start_s < end_s:
            is_seen = one.state == FULL
            steps.append(CapacityStep(one.start_s, min(one.end_s, end_s), known[index], is_seen))
        at_s = one.end_s
    if at_s < end_s:
        steps += _filled(bins, rates, len(indices), at_s, end_s)
    return tuple(steps)


_BESIDE: Final = 5
"""The number of steps on either side that give the rate of an unknown time."""


def _filled(
    bins: Sequence[_Bin], rates: Sequence[float], next_known: int, from_s: float, to_s: float
) -> list[CapacityStep]:
    """Interpolates the rate of an unknown time; it is at least the observed rate."""
    before = rates[max(0, next_known - _BESIDE) : next_known]
    after = rates[next_known : next_known + _BESIDE]
    left = fmean(before or after)
    right = fmean(after or before)
    inside = [one for one in bins if one.start_s >= from_s - 1e-9 and one.end_s <= to_s + 1e-9]
    cuts = sorted({from_s, to_s, *(one.start_s for one in inside), *(one.end_s for one in inside)})
    came = {one.start_s: one.rate_bps for one in inside if one.state == PART}
    steps = []
    for begin_s, stop_s in itertools.pairwise(cuts):
        share = ((begin_s + stop_s) / 2 - from_s) / (to_s - from_s)
        guessed = left + share * (right - left)
        steps.append(CapacityStep(begin_s, stop_s, max(guessed, came.get(begin_s, 0.0)), False))
    return steps


def _base_rtts(
    bins: Sequence[_Bin], connections: Sequence[Connection]
) -> tuple[tuple[float, float], ...]:
    """Returns the least round trip of each connection, if it differs from the one before it."""
    begins = [0.0, *(one.ready_s for one in connections[1:])]
    found: list[tuple[float, float]] = []
    for number, begin_s in enumerate(begins):
        stop_s = begins[number + 1] if number + 1 < len(begins) else float("inf")
        rtts = [
            one.base_rtt_s for one in bins if begin_s < one.end_s <= stop_s and one.base_rtt_s > 0
        ]
        if rtts and (not found or abs(min(rtts) / found[-1][1] - 1) > 0.05):
            found.append((begin_s if found else 0.0, min(rtts)))
    return tuple(found)
