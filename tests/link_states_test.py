"""Compares recorded link states (`links.jsonl`) with captures at both ends, in the guest."""

import bisect
import json
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import PROBES, Linklab, lines, succeeded
from linklab.core.frames import FRAME_BYTES
from linklab.core.link_state import DIRECTIONS
from linklab.core.records import LinkRecord
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths
from linklab.scenario import load

SECONDS = 10.0
DOWN_BPS, UP_BPS = 6e6, 1.5e6
"""The rates sent, which exceed every link's."""

RATES = "down: 4 Mbit/s, up: 1 Mbit/s, queue: 1 MB"
ROAMING = (
    "radio: {standard: ac, width: 80 MHz, loss: 0 %, handover: PRESET, access_points: "
    "[{name: APa, signal: -50 dBm}, {name: APb, signal: -50 dBm}]}"
)

LINKS = {
    "plain": f"kind: lte, {RATES}, rtt: 60 ms",
    "rates": f"kind: lte, {RATES}, rtt: 40 ms",
    "moved": f"kind: lte, {RATES}, rtt: 100 ms",
    "asleep": f"kind: lte, {RATES}, rtt: 60 ms, rrc: {{inactivity: 100 ms, tail: 1 s}}",
    "traced": f"kind: lte, {RATES}, rtt: 60 ms, trace: {{file: ./gaps.csv, rate: recorded}}",
    "fast": f"kind: wifi, {RATES}, rtt: 60 ms, {ROAMING}".replace("PRESET", "fast-transition"),
    "slow": f"kind: wifi, {RATES}, rtt: 60 ms, {ROAMING}".replace("PRESET", "full-scan"),
    "dhcp": f"kind: wifi, {RATES}, rtt: 60 ms, {ROAMING}".replace("PRESET", "full-scan-dhcp"),
}

TRACE = "t,down_mbit,up_mbit\n0,4,1\n1,0,0\n1.5,3,0\n2,4,1\n4,0,1\n5,2,0.5\n6,4,1\n"

EVENTS = """\
  # One kind of event after the other, and two at a time.
  - {at: 2 s, link: plain, outage: true, for: 500 ms}
  - {at: 3.5 s, link: plain, outage: true, for: 10 ms}
  - {at: 4.5 s, link: plain, carrier: down, for: 700 ms}
  - {at: 6 s, link: plain, loss: 100 %, for: 300 ms}
  - {at: 7 s, link: plain, outage: true, for: 1 s}
  - {at: 7.5 s, link: plain, carrier: down, for: 1 s}
  # Rates and delays while all passes.
  - {at: 2 s, link: rates, down: 1 Mbit/s, up: 100 kbit/s}
  - {at: 3 s, link: rates, down: 10 kbit/s, up: 10 kbit/s}
  - {at: 4 s, link: rates, down: 4 Mbit/s, up: 1 Mbit/s}
  - {at: 5 s, link: rates, rtt: 200 ms}
  - {at: 6.5 s, link: rates, rtt: 20 ms}
  - {at: 7.5 s, link: rates, fade: 30 %, for: 500 ms}
  - {at: 8.2 s, link: rates, cap: 500 kbit/s, for: 300 ms}
  - {at: 9 s, link: rates, cross: 5 Mbit/s, for: 300 ms}
  # Rates and delays while nothing passes.
  - {at: 3 s, link: moved, rtt: 20 ms}
  - {at: 3.02 s, link: moved, outage: true, for: 200 ms}
  - {at: 5 s, link: moved, outage: true, for: 1 s}
  - {at: 5.5 s, link: moved, down: 2 Mbit/s, up: 500 kbit/s}
  - {at: 7 s, link: moved, carrier: down, for: 500 ms}
  - {at: 7.2 s, link: moved, rtt: 60 ms}
  - {at: 8.5 s, link: moved, jitter: 5 ms}
  - {at: 9 s, link: moved, outage: true, for: 300 ms}
  # Over the other models.
  - {at: 3 s, link: asleep, outage: true, for: 300 ms}
  - {at: 5 s, link: asleep, outage: true, for: 2 s}
  - {at: 1.2 s, link: traced, outage: true, for: 500 ms}
  - {at: 4.5 s, link: traced, carrier: down, for: 1 s}
  - {at: 2 s, link: fast, handover: next}
  - {at: 4 s, link: fast, handover: next}
  - {at: 4.02 s, link: fast, outage: true, for: 200 ms}
  - {at: 6 s, link: fast, outage: true, for: 500 ms}
  - {at: 6.1 s, link: fast, handover: next}
  - {at: 8 s, link: fast, carrier: down, for: 500 ms}
  - {at: 2 s, link: slow, handover: next}
  - {at: 2.5 s, link: slow, carrier: up, for: 500 ms}
  - {at: 5 s, link: slow, handover: next}
  - {at: 5.2 s, link: slow, carrier: down, for: 3 s}
  - {at: 3 s, link: dhcp, handover: next}
  - {at: 8 s, link: dhcp, outage: true, for: 500 ms}
"""

FRAME_S = FRAME_BYTES * 8 / 1e6
"""The longest time between two frames when the delay becomes shorter."""

LATE_S = 20e-6
"""The largest lateness of a state, compared with waiting packets."""

History = list[LinkRecord]
Frame = tuple[float, int]


@dataclass(frozen=True)
class Part:
    """Holds a time in which a link's delay is constant. Frames that leave the access node from
    `start_s` to `end_s` arrive `shift_s` later, in order, also behind slower earlier ones. With
    jitter the delay deviates by -1 to 8 times the jitter."""

    start_s: float
    end_s: float
    shift_s: float
    jitter_s: float


def parts(history: History, direction: str) -> list[Part]:
    """Returns the parts of a link's history. The downlink has only one, because its delay lies
    before the access node."""
    if direction == "down":
        return [Part(0.0, SECONDS, 0.0, 0.0)]
    found: list[Part] = []
    for state in history:
        last = found[-1] if found else Part(0.0, 0.0, 0.0, 0.0)
        if not found or (last.shift_s, last.jitter_s) != (state.delay_s, state.jitter_s):
            overlap_s = last.shift_s + 8 * last.jitter_s - (state.delay_s - state.jitter_s)
            # What arrives now comes with the last frame before the change.
            if found and overlap_s > 0:
                found[-1] = replace(last, end_s=state.t_s - FRAME_S)
            elif found:
                found[-1] = replace(last, end_s=state.t_s)
            start_s = state.t_s + max(0.0, overlap_s)
            found.append(Part(start_s, SECONDS, state.delay_s, state.jitter_s))
    return found


def ends(history: History) -> list[float]:
    return [*(state.t_s for state in history[1:]), SECONDS]


def times(history: History, direction: str, *, passes: bool) -> list[tuple[float, float]]:
    """Returns the spans in which packets pass, or do not."""
    found: list[tuple[float, float]] = []
    for state, end_s in zip(history, ends(history), strict=True):
        if state.passes(direction) == passes and end_s > state.t_s:
            if found and found[-1][1] == state.t_s:
                found[-1] = (found[-1][0], end_s)
            else:
                found.append((state.t_s, end_s))
    return found


def capacity(history: History, direction: str) -> Callable[[float], float]:
    """Returns a function that gives the bytes that could have passed up to a time."""
    starts = [state.t_s for state in history]
    rates = [state.rate_bps(direction) / 8 if state.passes(direction) else 0.0 for state in history]
    sums = [0.0]
    for (before_s, after_s), rate in zip(pairwise(starts), rates, strict=False):
        sums.append(sums[-1] + rate * (after_s - before_s))

    def up_to(t_s: float) -> float:
        number = max(0, bisect.bisect_right(starts, t_s) - 1)
        return sums[number] + rates[number] * max(0.0, t_s - starts[number])

    return up_to


def too_early_or_late(history: History, direction: str, frames: list[Frame]) -> Iterator[str]:
    """Yields frames that arrived at a time in which nothing passes."""
    delays = parts(history, direction)
    for start_s, end_s in times(history, direction, passes=False):
        before_s = max(
            part.shift_s + 8 * part.jitter_s
            for part in delays
            if part.start_s <= start_s and start_s < part.end_s + 0.2
        )
        after = next(part for part in reversed(delays) if part.start_s <= end_s)
        first_s, last_s = start_s + before_s + LATE_S, end_s + after.shift_s - after.jitter_s
        leaked = [(t_s, size) for t_s, size in frames if first_s < t_s < last_s]
        if leaked:
            size = sum(size for _, size in leaked)
            yield (
                f"{direction} {start_s:.3f}-{end_s:.3f} s: {len(leaked)} frames of {size} B, "
                f"from {leaked[0][0]:.6f} to {leaked[-1][0]:.6f} s"
            )


def too_much(history: History, direction: str, frames: list[Frame]) -> Iterator[str]:
    """Yields spans in which frames arrived faster than the rate allows. A frame arrives with its last
    bit."""
    up_to = capacity(history, direction)
    for part in parts(history, direction):
        if part.jitter_s:
            continue
        carried, least = 0, float("inf")
        for t_s, size in frames:
            left_s = t_s - part.shift_s
            if part.start_s + LATE_S <= left_s < part.end_s:
                carried += size
                beyond = carried - up_to(left_s)
                if beyond - least > 10:
                    yield f"{direction}: {beyond - least:.0f} B too much at {left_s:.6f} s"
                    break
                least = min(least, beyond)


def too_little(history: History, direction: str, frames: list[Frame]) -> Iterator[str]:
    """Yields spans in which too little arrived, although there was always something to send."""
    up_to = capacity(history, direction)
    for part in parts(history, direction):
        if part.jitter_s:
            continue
        for start_s, end_s in times(history, direction, passes=True):
            first_s = max(start_s, part.start_s) + dead_s(history, direction, start_s)
            last_s = min(end_s, part.end_s)
            carried = sum(size for t_s, size in frames if first_s <= t_s - part.shift_s < last_s)
            due = up_to(last_s) - up_to(first_s)
            if carried < 0.999 * due - 2 * FRAME_BYTES:
                yield f"{direction} {first_s:.3f}-{last_s:.3f} s: {carried} B of {due:.0f}"


def dead_s(history: History, direction: str, start_s: float) -> float:
    """Returns how long nothing may arrive although the link passes: until a frame was sent, and
    until an idle radio is ready."""
    pause_s = 2.5 * FRAME_BYTES * 8 / (DOWN_BPS if direction == "down" else UP_BPS)
    number = next(n for n, state in enumerate(history) if state.t_s == start_s)
    last = history[max(0, number - 1)]
    before = next((one for one in reversed(history[:number]) if one.passes(direction)), None)
    now = history[number]
    if before is None:
        own_s = sum(FRAME_BYTES * 8 / now.rate_bps(way) for way in DIRECTIONS)
        return pause_s + own_s + 2 * now.delay_s
    if now.lease != before.lease:
        return pause_s + 3 * now.delay_s
    is_other = now.access_point != before.access_point or now.delay_s != before.delay_s
    if direction == "down" and (is_other or last.loss_ratio == 1):
        return pause_s + now.delay_s
    return pause_s


@pytest.fixture
def histories(
    linklab: Linklab, tmp_path: Path
) -> dict[str, tuple[History, dict[str, list[Frame]]]]:
    """Yields each link's states, and its arrived frames by direction."""
    (tmp_path / "gaps.csv").write_text(TRACE)
    named = [f"  {name}: {{{keys.replace('AP', name)}}}" for name, keys in LINKS.items()]
    file = tmp_path / "states.yaml"
    file.write_text(
        "name: states\npayload: {size: 1 MB}\nlinks:\n" + "\n".join(named) + "\nevents:\n" + EVENTS
    )
    paths = link_paths(load(file).links)
    devices = [path.device for path in paths.values()]
    probe = ("python3", PROBES / "flood.py", SECONDS, DOWN_BPS, UP_BPS, *devices)
    run_dir = succeeded(linklab, "exec", file, "--", *probe).run_dir
    arrived = {
        side: json.loads((run_dir / f"arrived-{side}.json").read_text())
        for side in ("client", "server")
    }
    states = [LinkRecord(**line) for line in lines(run_dir / "links.jsonl")]
    return {
        name: (
            [state for state in states if state.link == name and state.t_s < SECONDS],
            {
                direction: [(t_ns / 1e9, size) for t_ns, size in arrived[side][device]]
                for direction, side, device in (
                    ("down", "client", path.device),
                    ("up", "server", path.server.interface),
                )
            },
        )
        for name, path in paths.items()
    }


DEEP = """\
name: deep
payload: {size: 6 MB}
links: {lte: {down: 5 Mbit/s, up: 5 Mbit/s, rtt: 60 ms, queue: 1 MB}}
events: [{at: 6 s, link: lte, outage: true, for: 1 s}]
"""


def received(file: Path) -> Iterator[Frame]:
    """Yields the frames of a capture that came from the lab's server."""
    content = file.read_bytes()[24:]
    at, began_s = 0, 0
    while at < len(content):
        seconds, nanoseconds, size, _ = struct.unpack_from("<IIII", content, at)
        began_s = began_s or seconds
        if socket.inet_ntoa(content[at + 42 : at + 46]) == SERVER_ADDRESS:
            yield seconds - began_s + nanoseconds / 1e9, size
        at += 16 + size


def test_nothing_of_a_download_arrives_in_an_outage(linklab: Linklab, tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(DEEP)
    done = succeeded(linklab, "run", tmp_path / "deep.yaml", "-a", "naive", "--pcap", "lte")
    frames = list(received(done.run_dir / "lte.pcap"))
    sizes = Counter({int(t_s): 0 for t_s, _ in frames})
    for t_s, size in frames:
        sizes[int(t_s)] += size
    assert sizes[6] == 0
    assert sizes[5] == pytest.approx(5e6 / 8, rel=0.01)
    assert sizes[7] > 0


def test_what_passes_is_what_links_say(
    histories: dict[str, tuple[History, dict[str, list[Frame]]]],
) -> None:
    found = []
    for name, (history, arrived) in histories.items():
        for direction, frames in arrived.items():
            assert sum(size for _, size in frames) > 100_000
            for look in (too_early_or_late, too_much, too_little):
                found += [f"{name} {words}" for words in look(history, direction, frames)]
    assert not found, "\n".join(found)
