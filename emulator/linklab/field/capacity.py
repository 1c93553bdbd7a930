"""What a link could carry, from what came over it: rate over time, breaks, delay, queue. Pure.

A download shows a link's capacity while the link's queue stands: then round trips take longer than
they do without queues, and what comes is what the link carries. While a connection still speeds up,
has just lost packets, or waits for an answer, the link could have carried more; such times get what
was seen beside them. Where bodies came for longer than `LONG_S` without a pause and without a queue,
something else was the limit, such as losses or the server: that is taken as it was, since nothing
tells what the link could do.

TCP hands bytes on in their order: behind a lost packet nothing arrives, and then all at once. Such a
hole and its burst count as the link carrying on evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

from linklab.core.frames import FRAME_BYTES
from linklab.field.course import Connection, LinkCourse, LinkProgress, covered_s

LONG_S: Final = 1.0
"""How long less than the capacity is taken for a passing state of the connection."""

_BREAK_S: Final = 0.3
"""Silence from which on a link counts as broken off, if it is also two round trips."""

_QUEUED: Final = (0.002, 0.1)
"""A queue stands if it takes more than this: seconds, and a share of the round trip without."""

_BURST: Final = 1.25
_HOLE: Final = 0.9
"""What comes above or below this share of the level around it may be a hole and its burst."""

_TRICKLE: Final = 0.02
"""What comes below this share of the usual rate is as good as nothing."""

HELD, LOST, CARRIER = "held", "lost", "carrier"


@dataclass(frozen=True, slots=True)
class CapacityStep:
    """From `start_s` to `end_s` the link could carry `rate_bps`, frames with their headers.
    `is_seen` says that it was used up then; else the rate is that of other moments."""

    start_s: float
    end_s: float
    rate_bps: float
    is_seen: bool


@dataclass(frozen=True, slots=True)
class Break:
    """Nothing came until `end_s` though it was waited for.

    `kind` is `held` (what was on its way came afterwards), `lost` (what was sent from `start_s` on
    never came; the link may have been back before the sender's next try told) or `carrier` (the
    client saw the link go and come back). It `has_ended` unless the recording ended first.
    """

    start_s: float
    end_s: float
    kind: str
    has_ended: bool = True


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a link could carry in a recording. `steps` follow each other from 0 to its end.

    `base_rtts` are round trips without queues, each from its time on. `queue_bytes` is the longest
    queue that was seen, and `overflowed` says that packets were lost at that length. `filled_s` is how
    long the link was used up, `unfilled_s` how long it was used and had no queue for longer than
    `LONG_S`.
    """

    steps: tuple[CapacityStep, ...]
    breaks: tuple[Break, ...]
    base_rtts: tuple[tuple[float, float], ...]
    queue_bytes: int
    overflowed: bool
    filled_s: float
    unfilled_s: float

    def mean_bps(self) -> float:
        """The mean over the whole recording, without its breaks."""
        length_s = sum(one.end_s - one.start_s for one in self.steps)
        return sum(one.rate_bps * (one.end_s - one.start_s) for one in self.steps) / length_s


class CapacityError(ValueError):
    """A course that does not show what the link could carry; says why."""


FULL, PART, QUIET, IDLE = "full", "part", "quiet", "idle"


@dataclass(slots=True)
class _Bin:
    """Between two looks at a link. `rate_bps` is what came while bodies came; `queue_bytes` is what
    came while its last packet waited."""

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


def of_course(course: LinkCourse, end_s: float) -> Capacity:
    """What a link could carry until `end_s`. Raises CapacityError where it carried nothing, or all at
    one moment."""
    if not course.carried_bytes:
        raise CapacityError("it carried nothing, so what it could carry is not known")
    bins = _bins(course)
    if not bins:
        raise CapacityError("it was seen at one moment, so what it could carry is not known")
    overflowed = _overflowed(bins) if course.is_exact else _even_out(bins)
    breaks = _breaks(bins, course, end_s)
    _demote(bins)
    queue_bytes = max(round(one.queue_bytes) for one in bins)
    unfilled_s = sum(_length_s(run) for run in _unfilled(bins))
    return Capacity(
        steps=_steps(bins, end_s),
        breaks=breaks,
        base_rtts=_base_rtts(bins, course.connections),
        queue_bytes=queue_bytes,
        overflowed=overflowed,
        filled_s=sum(one.length_s for one in bins if one.state == FULL),
        unfilled_s=unfilled_s,
    )


def _bins(course: LinkCourse) -> list[_Bin]:
    begin_s = course.coming[0][0] if course.coming else course.seen[0].t_s
    first = LinkProgress(min(begin_s, course.seen[0].t_s), 0, 0.0, 0.0, 0)
    bins = []
    for before, after in itertools.pairwise((first, *course.seen)):
        if after.t_s > before.t_s:
            bins.append(_bin(course, before, after))
    return bins


def _bin(course: LinkCourse, before: LinkProgress, after: LinkProgress) -> _Bin:
    start_s, end_s = before.t_s, after.t_s
    count = after.carried_bytes - before.carried_bytes
    coming_s = covered_s(course.coming, start_s, end_s)
    queued_s = max(0.0, after.rtt_s - after.base_rtt_s) if after.base_rtt_s else 0.0
    at_least_s, share = _QUEUED
    patience_s = max(LONG_S, 3 * after.rtt_s)
    given_away = any(0 <= end_s - at_s <= patience_s for at_s in course.given_away_s)
    rate_bps, state = 0.0, IDLE
    if count:
        if course.is_exact and (given_away or not course.coming):
            coming_s = end_s - start_s
        rate_bps = count * 8 / max(coming_s, 0.3 * (end_s - start_s))
        is_full = queued_s > max(at_least_s, share * after.base_rtt_s)
        enough = coming_s >= 0.3 * (end_s - start_s)
        state = (FULL if is_full else PART) if enough else IDLE
    elif covered_s(course.asked, start_s, end_s) >= 0.5 * (end_s - start_s):
        state = IDLE if given_away else QUIET
    return _Bin(
        start_s,
        end_s,
        count,
        rate_bps,
        state,
        queued_s,
        course.carried_between(end_s - queued_s, end_s) if queued_s else 0.0,
        after.base_rtt_s,
        after.out_of_order > before.out_of_order,
        any(at <= start_s and end_s <= to and to - at > LONG_S for at, to in course.coming),
    )


def _level_bps(bins: Sequence[_Bin], at_s: float, within_s: float = LONG_S) -> float:
    """What came in the bins around a time, those in which most was known first; 0 for none."""
    for states in ((FULL,), (FULL, PART)):
        rates = [
            one.rate_bps
            for one in bins
            if one.state in states and one.end_s > at_s - within_s and one.start_s < at_s + within_s
        ]
        if rates:
            return median(rates)
    return 0.0


def _breaks(bins: list[_Bin], course: LinkCourse, end_s: float) -> tuple[Break, ...]:
    """Silences, whose bins become idle; the bins beside them lose what lay in the silence."""
    found: list[Break] = _awaited(course)
    _hush(bins)
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
        found.append(_break(begin_s, resumed_s, bins[first:], course, after is None))
        _idle(silence)
    return tuple(sorted(found, key=lambda one: one.start_s))


def _hush(bins: Sequence[_Bin]) -> None:
    """A packet or two within a silence do not end it."""
    usual = median([one.rate_bps for one in bins if one.bytes])
    for before, one in itertools.pairwise(bins):
        is_trickle = one.bytes <= 2 * FRAME_BYTES and one.rate_bps < _TRICKLE * usual
        if one.state in (FULL, PART) and is_trickle and before.state == QUIET:
            one.state = QUIET


def _awaited(course: LinkCourse) -> list[Break]:
    """What a first connection waited for, such as a radio that slept."""
    if not course.connections:
        return []
    first = course.connections[0]
    rtt_s = min((one.base_rtt_s for one in course.seen if one.base_rtt_s), default=first.tcp_s)
    if first.tcp_s < 1.5 * rtt_s + 0.02:
        return []
    return [Break(first.dialled_s, first.dialled_s + first.tcp_s, HELD)]


def _break(
    begin_s: float, resumed_s: float, bins: Sequence[_Bin], course: LinkCourse, is_last: bool
) -> Break:
    """What a silence was, from the last arrival to the next."""
    made = [one for one in course.connections if begin_s < one.ready_s <= resumed_s + 0.05]
    told = [at_s for at_s, _ in course.failures if begin_s <= at_s <= resumed_s]
    if made and not told:
        return Break(begin_s, made[-1].dialled_s, CARRIER)
    after = [one.queued_s for one in bins if one.start_s < resumed_s + 0.3]
    silent_s = resumed_s - begin_s
    waited = any(begin_s < at_s <= resumed_s + 0.1 for at_s in course.held_s)
    waited |= max(after) - bins[0].queued_s > 0.05 * silent_s
    if waited and not made and not is_last:
        return Break(begin_s, resumed_s, HELD)
    # What had passed the link's far end before it began to lose still came.
    lost_s = max(0.0, begin_s - bins[0].queued_s - bins[0].base_rtt_s / 2)
    if made:
        return Break(lost_s, made[-1].dialled_s + made[-1].tcp_s, LOST)
    return Break(lost_s, resumed_s, LOST, has_ended=not is_last)


def _idle(bins: Sequence[_Bin]) -> None:
    for one in bins:
        one.state = IDLE


def _overflowed(bins: Sequence[_Bin]) -> bool:
    """Whether packets were lost when the queue was long, and hardly otherwise but after a silence."""
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
    """Spreads bursts over the holes before them; whether a hole came with a queue that was long."""
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
            and bins[first - 1].rate_bps < _HOLE * level
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
    """The first bin with a queue began without one."""
    for before, after in itertools.pairwise([None, *(replace(one) for one in bins)]):
        if after is not None and after.state == FULL and (before is None or before.state == PART):
            index = next(i for i, one in enumerate(bins) if one.start_s == after.start_s)
            bins[index].state = PART


def _runs(bins: Sequence[_Bin], wanted: Callable[[_Bin], bool]) -> list[tuple[int, int]]:
    """First and last index of bins in a row that are wanted."""
    runs = []
    for is_wanted, group in itertools.groupby(enumerate(bins), key=lambda pair: wanted(pair[1])):
        if is_wanted:
            indices = [index for index, _ in group]
            runs.append((indices[0], indices[-1]))
    return runs


def _unfilled(bins: Sequence[_Bin]) -> list[Sequence[_Bin]]:
    """Times without a queue that are too long to be passing."""
    found = []
    for first, last in _runs(bins, lambda one: one.state == PART and one.is_steady):
        run = bins[first : last + 1]
        if not first or not any(one.bytes for one in bins[:first]):
            run = _after_ramp(run)
        if _length_s(run) > LONG_S:
            found.append(run)
    return found


def _after_ramp(run: Sequence[_Bin]) -> Sequence[_Bin]:
    """What follows the first bin that comes near the run's usual rate."""
    usual = median([one.rate_bps for one in run])
    first = next(index for index, one in enumerate(run) if one.rate_bps >= 0.8 * usual)
    return run[first:]


def _bursts(bins: Sequence[_Bin]) -> dict[int, float]:
    """By the index of a bin the rate of bodies that came between pauses, where no queue stood for
    long: the most of the bins around it, since each may be a connection that still speeds up."""
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
"""How many steps on either side tell the rate of a time that tells nothing itself."""


def _filled(
    bins: Sequence[_Bin], rates: Sequence[float], next_known: int, from_s: float, to_s: float
) -> list[CapacityStep]:
    """Steps for an unknown time: from the rate before it to the one after it, at least what came."""
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
    """The least round trip of each connection, where it differs from that before it."""
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
