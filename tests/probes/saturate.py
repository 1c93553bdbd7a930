"""Keeps the uplink of one link busy with UDP packets of a full frame's size.

usage: saturate.py DEVICE BIT_PER_S SECONDS

In bursts every 5 ms, a tenth above the rate: single sleeps err by the kernel's timer slack
of 50 µs, which is more than a frame's time at 300 Mbit/s.
"""

import socket
import sys
import time

FRAME = 1514
FRAME_PAYLOAD = 1472
PERIOD_S = 0.005

device, rate_bps, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
packets_per_s = 1.1 * rate_bps / 8 / FRAME
start = time.monotonic()
sent = 0
for period in range(1, round(seconds / PERIOD_S) + 1):
    while sent < period * PERIOD_S * packets_per_s:
        sender.sendto(bytes(FRAME_PAYLOAD), ("10.0.0.1", 9))
        sent += 1
    time.sleep(max(0.0, start + period * PERIOD_S - time.monotonic()))
