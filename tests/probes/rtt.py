"""Prints the time of ten TCP handshakes with the lab's server through one link, in seconds.

usage: rtt.py DEVICE

The link is idle before each of them: the end of a connection takes 1 ms of an uplink of 1 Mbit/s.
"""

import socket
import sys
import time

PAUSE_S = 0.01

for _ in range(10):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
        start = time.monotonic()
        connection.connect(("10.0.0.1", 443))
        print(time.monotonic() - start)
    time.sleep(PAUSE_S)
