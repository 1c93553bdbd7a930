"""What the subflows of one connection of Multipath TCP carry, and how their windows grow.

usage: subflows.py serve PORT
       subflows.py fetch ORDER

The server obeys the client's order, one line: `CONTROL BURST_BYTES PAUSE_S SECONDS`. It sends a burst
after each pause, by this congestion control; a pause of 0 sends without end. Every 10 ms it notes the
state of each subflow, and prints them at the end as lines of JSON.
"""

import ctypes
import json
import os
import socket
import struct
import sys
import threading
import time
from urllib.parse import urlsplit

INTERVAL_S = 0.01
SOL_MPTCP, MPTCP_TCPINFO = 284, 2
HEADER = struct.Struct("=IIII")
"""struct mptcp_subflow_data (linux/mptcp.h)."""
INFO_BYTES, MOST = 256, 8
STATE_AT, MSS_AT, RTT_AT, SSTHRESH_AT, ACKED_AT = 1, 16, 68, 76, 120
"""Places in struct tcp_info (linux/tcp.h). The window follows the threshold."""

LIBC = ctypes.CDLL(None, use_errno=True)


def subflows(sock: socket.socket) -> list[dict[str, int]]:
    """Returns the state of each subflow, in the order of their beginning."""
    buffer = bytearray(HEADER.pack(HEADER.size, 0, 0, INFO_BYTES) + bytes(INFO_BYTES * MOST))
    length = ctypes.c_uint32(len(buffer))
    place = (ctypes.c_char * len(buffer)).from_buffer(buffer)
    if LIBC.getsockopt(sock.fileno(), SOL_MPTCP, MPTCP_TCPINFO, place, ctypes.byref(length)):
        raise OSError(ctypes.get_errno(), "getsockopt MPTCP_TCPINFO")
    found = []
    for number in range(HEADER.unpack_from(buffer)[1]):
        at = HEADER.size + number * INFO_BYTES
        threshold, window = struct.unpack_from("=II", buffer, at + SSTHRESH_AT)
        found.append(
            {
                "state": buffer[at + STATE_AT],
                "mss": struct.unpack_from("=I", buffer, at + MSS_AT)[0],
                "rtt_us": struct.unpack_from("=I", buffer, at + RTT_AT)[0],
                "threshold": threshold,
                "window": window,
                "acked": struct.unpack_from("=Q", buffer, at + ACKED_AT)[0],
            }
        )
    return found


def serve(port: int) -> None:
    listener = socket.socket(proto=socket.IPPROTO_MPTCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen()
    sock, _ = listener.accept()
    control, burst, pause, seconds = sock.makefile("r").readline().split()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    end_s = time.monotonic() + float(seconds)

    def send() -> None:
        while time.monotonic() < end_s:
            sock.sendall(bytes(int(burst)))
            time.sleep(float(pause))

    sending = threading.Thread(target=send)
    sending.start()
    noted = []
    while sending.is_alive() and time.monotonic() < end_s:
        noted.append(json.dumps(subflows(sock)))
        time.sleep(INTERVAL_S)
    sending.join()
    sock.close()
    print("\n".join(noted), flush=True)


def fetch(order: str) -> None:
    url = urlsplit(os.environ["LINKLAB_URL"])
    received = 0
    with socket.socket(proto=socket.IPPROTO_MPTCP) as sock:
        sock.connect((url.hostname, url.port or 443))
        sock.sendall(f"{order}\n".encode())
        while block := sock.recv(1 << 20):
            received += len(block)
    print(received)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        fetch(sys.argv[2])
