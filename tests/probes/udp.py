"""Sends UDP packets of a full frame's size to the lab's server through one link.

usage: udp.py DEVICE PACKETS INTERVAL_S
"""

import socket
import sys
import time

FRAME_PAYLOAD = 1472

device, packets, interval_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
start = time.monotonic()
for number in range(packets):
    if interval_s:
        time.sleep(max(0.0, start + number * interval_s - time.monotonic()))
    sender.sendto(bytes(FRAME_PAYLOAD), ("10.0.0.1", 9))
time.sleep(1.0)
