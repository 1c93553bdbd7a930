"""Section `fidelity`: measures rate, queue, outage, each packet's time, idle flows, ECN, Wi-Fi's air and UDP by SOCKS5."""

from __future__ import annotations

import statistics
from itertools import pairwise

from linklab.core.frames import FRAME_BYTES, goodput_ratio

from bench.accecn import accecn
from bench.airtime import airtime
from bench.common import PROBES, Bench, Done, Result, percent, table, target
from bench.outside import outside
from bench.packets import packets
from bench.round_trips import round_trips
from bench.timers import timers

IDLE = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 30 ms, queue: 500 kB"

FRAMES = ("udp_up_frames", "tcp_down_frames")
GOODPUT = "tcp_down_goodput"

RATE_AIM = 0.005
QUEUE_AIM_BYTES = FRAME_BYTES

AT_ONCE = FRAME_BYTES
"""An idle link sends the first frame of a burst at once."""


def fidelity(bench: Bench) -> Result:
    """The links' behaviour against the scenario's values, in virtual time."""
    return {
        "rate": _rates(bench),
        "queue": _queues(bench),
        "outage": _outages(bench),
        "packets": packets(bench),
        "round_trips": round_trips(bench),
        "timers": timers(bench),
        "accecn": accecn(bench),
        "airtime": airtime(bench),
        "outside": outside(bench),
    }


def _rates(bench: Bench) -> Result:
    """Measures a saturated Wi-Fi link: uplink by UDP, downlink by one TCP connection."""
    payloads_mb = {1: 10, 10: 40, 80: 100, 300: 250}
    seconds = {1: 20, 10: 10, 80: 5, 300: 4}
    rates = (1, 80) if bench.quick else tuple(payloads_mb)
    calls: list[tuple[object, ...]] = []
    for rate in rates:
        queue_kb = max(50, round(rate * 1e6 / 8 * 0.1 / 1e3))
        file = bench.links(
            f"rate-{rate}",
            size=f"{payloads_mb[rate]} MB",
            lte=IDLE,
            wifi=f"down: {rate} Mbit/s, up: {rate} Mbit/s, rtt: 10 ms, queue: {queue_kb} kB",
        )
        calls.append(
            (
                "exec",
                file,
                "--",
                "python3",
                PROBES / "saturate.py",
                "wlan0",
                rate * 1e6,
                seconds[rate],
            )
        )
        calls.append(("run", file, "-a", "single-wifi"))
    done = bench.all("saturated links", calls)
    shown = table("rate\nMbit/s", "UDP up\nframes %", "TCP down\nframes %", "TCP down\ngoodput %")
    result = {}
    for number, rate in enumerate(rates):
        udp, tcp = done[2 * number], done[2 * number + 1]
        end_s = float(tcp.json["figures"]["download_s"])
        errors = {
            FRAMES[0]: _frame_rate(udp, "up", 1.0, seconds[rate]) / (rate * 1e6) - 1,
            FRAMES[1]: _frame_rate(tcp, "down", 1.5, end_s) / (rate * 1e6) - 1,
            GOODPUT: _goodput(tcp, 1.5) / (rate * 1e6 * goodput_ratio()) - 1,
        }
        result[str(rate)] = errors
        shown.add_row(str(rate), *(percent(error, 3) for error in errors.values()))
    worst = {
        name: max(abs(errors[name]) for errors in result.values()) for name in (*FRAMES, GOODPUT)
    }
    frames, goodput = max(worst[name] for name in FRAMES), worst[GOODPUT]
    bench.say("\n[bold]Saturated link: error of the rate[/bold]")
    bench.say(
        "frames against the rate; goodput against rate x "
        f"{goodput_ratio():.4f} (TCP, TLS, HTTP/2);\nsteady state, on Wi-Fi"
    )
    bench.console.print(shown)
    for what, error in (("frames", frames), ("goodput", goodput)):
        bench.say(f"{what}: worst {error * 100:.3f} %; " + target("0.5 %", error <= RATE_AIM))
    return {"errors": result, "worst": worst}


def _frame_rate(done: Done, direction: str, from_s: float, to_s: float) -> float:
    """Returns the rate of whole frames that left the queue between two samples, in bit/s."""
    samples = [one for one in done.queue("wifi", direction) if from_s <= one["t_s"] <= to_s]
    first, last = samples[0], samples[-1]
    return float((last["sent_bytes"] - first["sent_bytes"]) * 8 / (last["t_s"] - first["t_s"]))


def _goodput(done: Done, from_s: float) -> float:
    """Returns the payload's rate in bit/s, as the slope of a line through the client's samples. The
    client reads 64 kB at a time, so two samples alone could err by that much."""
    samples = [
        (line["t_ns"] / 1e9, line["received_bytes"])
        for line in done.lines("client.jsonl")
        if line["event"] == "sample" and line["link"] == "wifi" and line["t_ns"] > from_s * 1e9
    ]
    times, received = zip(*samples, strict=True)
    return statistics.linear_regression(times, received).slope * 8


def _queues(bench: Bench) -> Result:
    """Sends a burst of UDP into queues of several sizes, on both uplinks. LTE at 10 kbit/s has the
    first frame on the air for 1.2 s, while the queue holds the others. Wi-Fi at 8 Mbit/s sends while
    its queue fills."""
    sizes_kb = (20, 500) if bench.quick else (20, 100, 500, 2000)
    probe = PROBES / "udp.py"
    calls = []
    for size in sizes_kb:
        file = bench.links(
            f"queue-{size}",
            wifi=f"down: 8 Mbit/s, up: 8 Mbit/s, rtt: 10 ms, queue: {size} kB",
            lte=f"down: 8 Mbit/s, up: 10 kbit/s, rtt: 10 ms, queue: {size} kB",
        )
        packets = size * 1500 // FRAME_BYTES + 20
        drain_s = size * 1e3 * 8 / 8e6 + 0.6
        burst = (
            f"python3 {probe} rmnet0 {packets} 0 0 && python3 {probe} wlan0 {packets} 0 {drain_s}"
        )
        calls.append(("exec", file, "--", "sh", "-c", burst))
    shown = table(
        "queue B", "held B", "short by B", "accepted B\nat 8 Mbit/s", "over by B", "dropped"
    )
    rows = []
    for size, done in zip(sizes_kb, bench.all("queues", calls), strict=True):
        stated = size * 1000
        held = int(done.queue("lte", "up")[0]["queue_bytes"]) - FRAME_BYTES
        last = done.queue("wifi", "up")[-1]
        row = {
            "stated_bytes": stated,
            "held_bytes": held,
            "accepted_bytes": int(last["sent_bytes"]),
            "dropped_packets": int(last["dropped_packets"]),
        }
        rows.append(row)
        shown.add_row(
            str(stated),
            str(held),
            str(stated - held),
            str(row["accepted_bytes"]),
            f"{row['accepted_bytes'] - stated:+d}",
            str(row["dropped_packets"]),
        )
    bench.say("\n[bold]Drop-tail queue[/bold] (a burst of UDP)")
    bench.say(
        "held: beside the frame on the air; accepted: the queue, and the first frame of\n"
        f"the burst, which goes at once ({AT_ONCE} B)"
    )
    bench.console.print(shown)
    held_well = all(0 <= row["stated_bytes"] - row["held_bytes"] < FRAME_BYTES for row in rows)
    over = [row["accepted_bytes"] - row["stated_bytes"] - AT_ONCE for row in rows]
    bench.say(
        "held: "
        + target("within one packet", held_well)
        + "; accepted less one frame: "
        + target("within one packet", all(abs(one) <= QUEUE_AIM_BYTES for one in over))
    )
    return {"rows": rows, "held_within_packet": held_well}


def _outages(bench: Bench) -> Result:
    """Measures outages of Wi-Fi of several lengths, by UDP at one frame per 0.5 ms."""
    interval_s = 0.0005
    outages = ((1.0, 0.1), (3.0, 1.0), (6.0, 3.0))
    events = "".join(
        f"  - {{at: {at:g} s, link: wifi, carrier: down}}\n"
        f"  - {{at: {at + length:g} s, link: wifi, carrier: up}}\n"
        for at, length in outages
    )
    file = bench.links(
        "outages",
        wifi="down: 80 Mbit/s, up: 80 Mbit/s, rtt: 10 ms",
        lte=IDLE,
        more=f"events:\n{events}",
    )
    (done,) = bench.all(
        "outages",
        [("exec", file, "--", "python3", PROBES / "udp.py", "wlan0", 22_000, interval_s)],
    )
    samples = {round(one["t_s"], 1): one for one in done.queue("wifi", "up")}
    shown = table("carrier down s", "seen by UDP s", "error ms")
    rows = []
    edges = (0.5, 2.5, 5.5, 10.0)
    for (_, stated), (start, end) in zip(outages, pairwise(edges), strict=True):
        first, last = samples[start], samples[end]
        passed = (last["sent_bytes"] - first["sent_bytes"]) // FRAME_BYTES
        seen = last["t_s"] - first["t_s"] - passed * interval_s
        rows.append({"stated_s": stated, "seen_s": seen})
        shown.add_row(f"{stated:.1f}", f"{seen:.4f}", f"{(seen - stated) * 1e3:+.2f}")
    bench.say("\n[bold]Outage by carrier[/bold] (frames missing x 0.5 ms, so ± 0.5 ms)")
    bench.console.print(shown)
    late = max(line["late_s"] for line in done.lines("links.jsonl"))
    bench.say(f"events came late by at most {late * 1e6:.1f} µs")
    return {"rows": rows, "late_s": late}
