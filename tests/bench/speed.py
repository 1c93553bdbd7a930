"""Section `speed`: measures the lab's cost in real time."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

from bench.common import CORES, Bench, Result, table, target

TARGET_S = 9.0
TARGET_RATIO = 9.0
TARGET_SCALING = 1.8
TARGET_BOOT_S = 0.7

_HARDLY_A_DOWNLOAD = ("run", "emptcp-256kb-good-good", "-a", "curl-wifi")
"""A tiny download by a small program, so that the guest only boots, builds a lab and ends."""


def speed(bench: Bench) -> Result:
    """Virtual seconds per real second in hs-s7, one guest and two."""
    runs = 1 if bench.quick else 3
    loads = os.getloadavg()
    bench.say(
        f"250 MB by alg3 in hs-s7, {CORES} cores, minimum (median) of {runs}; load average "
        f"{loads[0]:.1f}\nbefore, and what else runs here slows these figures"
    )
    bench.linklab("exec", "hs-s7", "--", "true")  # Makes the payload and warms the page cache.
    download = ("run", "hs-s7", "-a", "alg3")
    boot_guests, boots = _boots(bench)
    alone = bench.all("one guest", [download] * runs, parallel=1)
    virtual_s = float(alone[0].json["figures"]["download_s"])
    calls = [one.seconds for one in alone]
    guests = [float(one.json["wall_s"]) for one in alone]
    least_boot, usual_boot = min(boots), statistics.median(boots)
    least, usual = min(calls), statistics.median(calls)
    ratio = virtual_s / (least - least_boot)
    shown = table("", "real s", "virtual s per real s")
    shown.add_row("boot and shutdown alone, the guest", _both(boot_guests), "")
    shown.add_row("boot and shutdown alone, the command", _both(boots), "")
    shown.add_row("the guest, boot included", _both(guests), _ratios(virtual_s, guests))
    shown.add_row("the command, boot included", _both(calls), _ratios(virtual_s, calls))
    shown.add_row(
        "the command less boot",
        f"{least - least_boot:.2f} ({usual - usual_boot:.2f})",
        f"{ratio:.2f} ({virtual_s / (usual - usual_boot):.2f})",
    )
    bench.console.print(shown)
    bench.say(
        f"250 MB in {least:.2f} s; {target('9 s, boot included', least <= TARGET_S)}\n"
        f"{ratio:.2f} virtual s per real s less boot; {target('9', ratio >= TARGET_RATIO)}"
    )
    result: Result = {
        "virtual_s": virtual_s,
        "boot_guest_s": boot_guests,
        "boot_s": boots,
        "guest_s": guests,
        "command_s": calls,
        "load_average_before": loads,
    }
    if CORES > 1:
        both = [_pair(bench, download, number + 1, runs) for number in range(runs)]
        factor, median = 2 * least / min(both), 2 * usual / statistics.median(both)
        bench.say(
            f"two guests on two cores: {_both(both)} s for both, scaling {factor:.2f} "
            f"({median:.2f}); " + target("1.8", factor >= TARGET_SCALING)
        )
        result |= {"two_guests_s": both, "scaling": factor, "scaling_of_medians": median}
    return result


def _boots(bench: Bench) -> tuple[list[float], list[float]]:
    """Returns the real seconds of guests that hardly download, and of the commands that start them."""
    count = 3 if bench.quick else 15
    bench.linklab(*_HARDLY_A_DOWNLOAD)
    done = bench.all("boots alone", [_HARDLY_A_DOWNLOAD] * count, parallel=1)
    guests = sorted(float(one.json["wall_s"]) for one in done)
    median = statistics.median(guests)
    bench.say(
        f"boot, lab and shutdown, {count} guests that hardly download: median {median:.2f} s, "
        f"from {guests[0]:.2f} to {guests[-1]:.2f}; "
        + target(f"{TARGET_BOOT_S:g} s", median <= TARGET_BOOT_S)
    )
    return guests, sorted(one.seconds for one in done)


def _both(values: Sequence[float]) -> str:
    return f"{min(values):.2f} ({statistics.median(values):.2f})"


def _ratios(virtual_s: float, values: Sequence[float]) -> str:
    return f"{virtual_s / min(values):.2f} ({virtual_s / statistics.median(values):.2f})"


def _pair(bench: Bench, call: tuple[object, ...], number: int, runs: int) -> float:
    """Returns the real seconds until two runs that begin together have ended."""
    begun = time.monotonic()
    bench.all(f"two guests, {number} of {runs}", [call, call], parallel=2)
    return time.monotonic() - begun
