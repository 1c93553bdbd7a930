"""Prints the least times that UDP packets take up to the lab's server and back down, in ns.

usage: one_way.py DEVICE END PAYLOAD WAIT

END is the server's device of the same link. A packet of PAYLOAD bytes goes up and one comes back, twenty
times after WAIT seconds, and not while those of another client are likely to be in the link's queues.
"""

import socket
import sys
import time

from packets import inside, namespaces

SERVER = "10.0.0.1"
TIMES = 20
PORT = 5100

device, end, payload, wait_s = sys.argv[1], sys.argv[2], bytes(int(sys.argv[3])), float(sys.argv[4])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near:
    near.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    near.connect((SERVER, PORT))
    number = int(near.getsockname()[0].rpartition(".")[2])
    near.connect((SERVER, PORT + number))  # Each client has a port of its own.
    with inside(namespaces()[end]):
        far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind((SERVER, PORT + number))
    time.sleep(wait_s)
    ups_ns, downs_ns = [], []
    for _ in range(TIMES):
        time.sleep(number % 10 * 1e-3)
        sent_ns = time.monotonic_ns()
        near.send(payload)
        client = far.recvfrom(len(payload))[1]
        came_ns = time.monotonic_ns()
        far.sendto(payload, client)
        near.recv(len(payload))
        ups_ns.append(came_ns - sent_ns)
        downs_ns.append(time.monotonic_ns() - came_ns)
    print(min(ups_ns), min(downs_ns))
