import io
import random
import re
from typing import Final

import pytest

from linklab.importers import ping
from linklab.traces.trace import TraceError, TraceFile, TraceSample

LINUX = """\
PING one.one.one.one (1.1.1.1) 56(84) bytes of data.
64 bytes from one.one.one.one (1.1.1.1): icmp_seq=1 ttl=56 time=20.5 ms
64 bytes from one.one.one.one (1.1.1.1): icmp_seq=2 ttl=56 time=30 ms
From 10.0.0.1 icmp_seq=3 Destination Host Unreachable
64 bytes from one.one.one.one (1.1.1.1): icmp_seq=5 ttl=56 time=1042 ms

--- one.one.one.one ping statistics ---
5 packets transmitted, 3 received, +1 errors, 40% packet loss, time 4005ms
rtt min/avg/max/mdev = 20.500/364.166/1042.000/0.000 ms
"""
MACOS = """\
PING 1.1.1.1 (1.1.1.1): 56 data bytes
64 bytes from 1.1.1.1: icmp_seq=0 ttl=56 time=20.512 ms
Request timeout for icmp_seq 1
64 bytes from 1.1.1.1: icmp_seq=2 ttl=56 time=30.101 ms
64 bytes from 1.1.1.1: icmp_seq=1 ttl=56 time=1500.000 ms

--- 1.1.1.1 ping statistics ---
3 packets transmitted, 3 packets received, 0.0% packet loss
round-trip min/avg/max/stddev = 20.512/25.306/30.101/4.794 ms
"""
STAMPED = """\
PING 2001:db8::1(2001:db8::1) 56 data bytes
[1700182800.410606] 64 bytes from 2001:db8::1: icmp_seq=65534 ttl=63 time=60.6 ms
[1700182800.421290] 64 bytes from 2001:db8::1: icmp_seq=65535 ttl=63 time=56.9 ms
[1700182800.442474] no answer yet for icmp_seq=0
[1700182800.465254] 64 bytes from 2001:db8::1: icmp_seq=1 ttl=63 time=68.8 ms
"""


def recording(
    content: str | bytes, bin_s: float | None = None, every_s: float | None = None
) -> TraceFile:
    raw = content.encode() if isinstance(content, str) else content
    return ping.read(io.BytesIO(raw), "x.log", bin_s, every_s)


def rtts_ms(trace: list[TraceSample]) -> list[float | None]:
    return [None if one.rtt_s is None else round(one.rtt_s * 1e3, 3) for one in trace]


def delays(count: int = 4000, every_s: float = 0.02, lost: float = 0.05) -> str:
    """A stamped log of a test at a steady pace, with replies in the order of their arrival."""
    draw = random.Random(1)
    lines = []
    for number in range(count):
        rtt_s = 0.02 + 0.04 * (number // 500 % 2) + 0.03 * draw.random()
        if draw.random() >= lost:
            came_s = 1.7e9 + number * every_s + rtt_s
            seq = (number + 1) % 65536
            text = f"64 bytes from 192.0.2.1: icmp_seq={seq} ttl=9 time={rtt_s * 1e3:.1f} ms"
            lines.append((came_s, f"[{came_s:.6f}] {text}"))
    return "\n".join(text for _, text in sorted(lines)) + "\n"


def test_linux_and_macos_tell_the_same_kind_of_thing() -> None:
    for log, rtts, lost in (
        (LINUX, [20.5, 30, 30, 30, 1042], "2 of 5 probes were lost, either way (40 %, 2 in a row"),
        (MACOS, [20.512, 1500, 30.101], ""),
    ):
        opened = recording(log)
        trace = list(opened.samples)
        assert rtts_ms(trace) == rtts
        assert {(one.length_ns, one.down_bps, one.loss_ratio) for one in trace} == {
            (10**9, None, None)
        }
        assert opened.columns == {"rtt"}
        assert not opened.has_rates
        assert "the log has no times: a probe every 1 s is assumed (--every)" in opened.notes
        assert any(note.startswith(lost) for note in opened.notes)


@pytest.mark.parametrize(
    ("header", "replies"),
    [
        (
            "PING 1.1.1.1 (1.1.1.1) 56(84) Bytes an Daten.",
            "64 Bytes von 1.1.1.1: icmp_seq={} ttl=5 Zeit=12,5 ms",
        ),
        (
            "PING 1.1.1.1 (1.1.1.1) 56(84) octets de données.",
            "64 octets de 1.1.1.1 : icmp_seq={} ttl=5 temps=12.5 ms",
        ),
        (
            "PING 1.1.1.1 (1.1.1.1): 56 data bytes",
            "64 bytes from 1.1.1.1: seq={} ttl=56 time=12.500 ms",
        ),
    ],
)
def test_any_language_is_read(header: str, replies: str) -> None:
    first = 0 if ": 56 data" in header else 1
    log = "\n".join([header, *(replies.format(first + one) for one in range(3)), "", "x"])
    assert rtts_ms(list(recording(log).samples)) == [12.5] * 3
    assert ping.FORMAT.begins(header)


def test_times_and_numbers_beyond_16_bits_place_the_probes() -> None:
    opened = recording(STAMPED, bin_s=0.01)
    trace = list(opened.samples)
    assert rtts_ms(trace)[0] == 60.6
    assert rtts_ms(trace)[-1] == 68.8
    assert "1 of 4 probes were lost, either way (25 %, 1 in a row on average)" in opened.notes
    length_ns = sum(one.length_ns for one in trace)
    assert length_ns == pytest.approx((465.254 - 68.8 - 410.606 + 60.6) * 1e6, abs=10e6)


def test_many_probes_give_medians_and_loss() -> None:
    opened = recording(delays())
    trace = list(opened.samples)
    assert len(trace) == 80
    assert opened.columns == {"rtt", "loss"}
    for index, one in enumerate(trace):
        low = 0.02 + 0.04 * (index // 10 % 2)
        assert one.rtt_s is not None
        assert low < one.rtt_s < low + 0.03
    losses = [one.loss_ratio for one in trace if one.loss_ratio is not None]
    assert len(losses) == 80
    assert sum(losses) / 80 == pytest.approx(0.05, abs=0.01)
    assert opened.notes[-1] == "this loss is the downlink's in the trace"
    coarse = list(recording(delays(), bin_s=20.0).samples)
    assert [one.length_ns for one in coarse] == pytest.approx([20e9] * 4, abs=1e6)


def test_a_silence_is_noted() -> None:
    """The machine slept between two probes, which the log does not show as lost."""
    lines = delays(400, lost=0.0).splitlines()
    later = [re.sub(r"\[(\d+)", lambda at: f"[{int(at[1]) + 60}", line) for line in lines[200:]]
    opened = recording("\n".join(lines[:200] + later))
    trace = list(opened.samples)
    assert opened.notes == [
        "1 times no probe was sent for more than 10 s: the round-trip time before holds"
    ]
    assert max(one.length_ns for one in trace) >= 58 * 10**9
    assert {one.loss_ratio for one in trace} == {0.0, None}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "x.log:1: there is no probe; needed: at least one"),
        ("PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n", "x.log:1: there is no probe; needed:"),
        (LINUX + LINUX, "x.log:10: a second test begins; allowed: one in a file, so split it"),
        (LINUX.replace("time 4005ms", "time 801ms"), "x.log:8: 5 probes took 0.801 s, which is"),
        (
            "PING 1.1.1.1 (1.1.1.1): 8 data bytes\n16 bytes from 1.1.1.1: icmp_seq=0 ttl=56\n",
            "x.log:2: a reply has no time; allowed: pings of at least 16 bytes (-s 16)",
        ),
        (
            STAMPED + "64 bytes from 2001:db8::1: icmp_seq=2 ttl=63 time=68.8 ms\n",
            "x.log:6: only some lines have a time; allowed: all (ping -D) or none",
        ),
        (STAMPED.replace("[1700182800.421290]", "[1700182700.421290]"), "x.log:5: a probe is 100 "),
        (
            STAMPED.replace("[1700182800.465254]", "[1701182801.1]"),
            "x.log:5: is too long; allowed:",
        ),
        (
            "PING 1.1.1.1 (1.1.1.1): 56 data bytes\nRequest timeout for icmp_seq 0\n",
            "x.log:2: all probes were lost; needed: at least one round trip",
        ),
    ],
)
def test_errors_say_line_reason_and_what_is_allowed(content: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        list(recording(content).samples)
    assert str(caught.value).startswith(message)
    assert "allowed" in str(caught.value) or "needed" in str(caught.value)


def test_the_distance_of_probes_may_be_given() -> None:
    opened = recording(LINUX.replace("time 4005ms", "time 801ms"), every_s=0.2)
    assert sum(one.length_ns for one in opened.samples) == 10**9


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
@pytest.mark.parametrize("seed", range(2))
def test_all_probes_are_counted(head: str, has_times: bool, seed: int) -> None:
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
    read = recording("\n".join(lines), 10 * every_s, None if has_times else every_s)
    samples = list(read.samples)
    assert any(note.startswith(f"{len(missing)} of {count} probes") for note in read.notes)
    assert sum(one.length_ns for one in samples) == pytest.approx(count * every_s * 1e9, rel=1e-3)
    lost = sum((one.loss_ratio or 0) * one.length_ns for one in samples) / 1e9 / every_s
    assert lost == pytest.approx(len(missing), rel=1e-3, abs=0.1)
