"""Tests, for every reader, that a file with known totals is read back with those totals."""

import io
import random
from collections.abc import Sequence
from typing import Final

import pytest

from linklab.importers import (
    mahimahi,
    rates_test,
    registry,
)
from linklab.importers.format import Options
from linklab.traces.trace import NS_PER_S, TraceFile, TraceSample

CASES: Final = 2


def sum_bytes(samples: Sequence[TraceSample], direction: str = "down") -> float:
    rates = [getattr(one, f"{direction}_bps") or 0 for one in samples]
    lengths = [one.length_ns for one in samples]
    return sum(rate * length for rate, length in zip(rates, lengths, strict=True)) / 8 / NS_PER_S


def length_s(samples: Sequence[TraceSample]) -> float:
    return sum(one.length_ns for one in samples) / NS_PER_S


def lost(samples: Sequence[TraceSample], per_s: float) -> float:
    """Returns the number of lost packets, of so many in a second."""
    shares = [(one.loss_ratio or 0) * one.length_ns for one in samples]
    return sum(shares) / NS_PER_S * per_s


def opened(content: bytes, name: str, options: Options | None = None) -> TraceFile:
    """Reads a file as the import does, by the format that is detected."""
    chosen = registry.format_of(content[:4096], name)
    return chosen.read(io.BytesIO(content), name, options or Options(), False)


@pytest.mark.parametrize("name", rates_test.FORMATS)
@pytest.mark.parametrize("seed", range(CASES))
def test_rates(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = random.Random(seed)
    rates = [draws.choice((draws.randint(1, 5), draws.randint(100, 900))) for _ in range(60)]
    monkeypatch.setattr(rates_test, "RATES_MBIT", rates)
    recording = opened(rates_test.FORMATS[name]().encode(), name)
    samples = list(recording.samples)
    assert recording.notes == []
    assert length_s(samples) == pytest.approx(60)
    assert sum_bytes(samples) == pytest.approx(sum(rates) * 1e6 / 8, rel=1e-3)


@pytest.mark.parametrize("seed", range(CASES))
def test_opportunities(seed: int) -> None:
    draws = random.Random(seed)
    times_ms = sorted(draws.choices(range(1, 20_000), k=draws.randint(2000, 9000)))
    content = "".join(f"{one}\n" for one in [*times_ms, 20_000]).encode()
    for size in (mahimahi.OPPORTUNITY_BYTES, 1400):
        options = Options(opportunity_bytes=size)
        samples = list(opened(content, "x", options).samples)
        assert length_s(samples) == pytest.approx(20)
        assert sum_bytes(samples) == pytest.approx((len(times_ms) + 1) * size, rel=1e-5)


HEADS: Final = {
    "Linux": (
        "PING h (192.0.2.1) 56(84) bytes of data.",
        1,
        "{} packets transmitted, {} received, ",
    ),
    "Linux, IPv6": (
        "PING h(2001:db8::1) 56 data bytes",
        1,
        "{} packets transmitted, {} received, ",
    ),
    "macOS": (
        "PING h (192.0.2.1): 56 data bytes",
        0,
        "{} packets transmitted, {} packets received, ",
    ),
}


def gaps(draws: random.Random, count: int) -> set[int]:
    """Returns lost probes: perhaps at both ends, and some between."""
    missing = {one for one in range(count) if draws.random() < 0.1}
    if draws.random() < 0.8:
        missing |= set(range(draws.randint(0, count // 3)))
    if draws.random() < 0.8:
        missing |= set(range(count - draws.randint(0, count // 3), count))
    return missing - {count // 2}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("has_times", [False, True])
@pytest.mark.parametrize("seed", range(CASES))
def test_pings(head: str, has_times: bool, seed: int) -> None:
    draws = random.Random(seed)
    header, first, statistics = HEADS[head]
    count, every_s = 10 * draws.randint(20, 300), draws.choice((0.01, 0.2, 1.0))
    missing = gaps(draws, count)
    lines = [header]
    for number in range(count):
        stamp = f"[{1_794_000_000 + number * every_s + 0.04:.6f}] " if has_times else ""
        if number not in missing:
            reply = f"64 bytes from 192.0.2.1: icmp_seq={first + number} ttl=53 time=40.0 ms"
            lines.append(stamp + reply)
        elif draws.random() < 0.2:
            lines.append(f"{stamp}no answer yet for icmp_seq={first + number}")
    share = 100 * len(missing) / count
    took = f", time {round((count - 1) * every_s * 1000)}ms" if first else ""
    sums = statistics.format(count, count - len(missing))
    lines += ["", "--- h ping statistics ---", f"{sums}{share:.4g}% packet loss{took}", ""]
    options = Options(bin_s=10 * every_s, every_s=None if has_times else every_s)
    read = opened("\n".join(lines).encode(), "x.log", options)
    samples = list(read.samples)
    assert any(note.startswith(f"{len(missing)} of {count} probes") for note in read.notes)
    assert length_s(samples) == pytest.approx(count * every_s, rel=1e-3)
    assert lost(samples, 1 / every_s) == pytest.approx(len(missing), rel=1e-3, abs=0.1)
