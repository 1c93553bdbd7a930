"""What connections with their own congestion controls get of a link.

usage: flows.py serve PORT [mptcp]
       flows.py fetch DEVICE SECONDS CONTROL…

The server sends without end to everybody, by the congestion control that the client names first. It
prints each connection's control and round-trip time in µs, as TCP smooths it. With `mptcp` it also
speaks Multipath TCP, which the client does for controls such as mptcp/lia. The
client fetches by one connection for each control, 0.1 s after the other. It prints the bytes that
each got in the second half of the time, as JSON.
"""

import json
import os
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

NAME_BYTES = 16
"""The length of a congestion control's name (TCP_CA_NAME_MAX)."""
RTT_AT = 68
"""The place of `tcpi_rtt` in `struct tcp_info` (linux/tcp.h)."""
LEAST_BYTES = 1 << 16
"""The bytes for which a reader is woken. Fewer wake-ups make virtual time faster."""


def choose(sock: socket.socket, control: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())


def feed(connection: socket.socket) -> None:
    control = connection.recv(NAME_BYTES, socket.MSG_WAITALL).decode().strip().split("/")[-1]
    choose(connection, control)
    block = bytes(1 << 18)
    try:
        while True:
            connection.sendall(block)
            known = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RTT_AT + 4)
            print(control, int.from_bytes(known[RTT_AT:], sys.byteorder), flush=True)
    except OSError:
        connection.close()


def serve(port: int, *, mptcp: bool) -> None:
    listener = socket.socket(proto=socket.IPPROTO_MPTCP if mptcp else 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not mptcp:
        # A listener without dctcp refuses ECN to clients with it (tcp_ecn_create_request).
        choose(listener, "dctcp")
    listener.bind(("", port))
    listener.listen(64)
    while True:
        threading.Thread(target=feed, args=(listener.accept()[0],), daemon=True).start()


def fetch(device: str, seconds: float, controls: list[str]) -> list[int]:
    url = urlsplit(os.environ["LINKLAB_URL"])
    start_s = time.monotonic()
    received = [0] * len(controls)

    def one(number: int) -> None:
        time.sleep(number / 10)
        mptcp = "/" in controls[number]
        with socket.socket(proto=socket.IPPROTO_MPTCP if mptcp else 0) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LEAST_BYTES)
            if not mptcp:
                choose(sock, controls[number])
            sock.connect((url.hostname, url.port or 443))
            sock.sendall(controls[number].ljust(NAME_BYTES).encode())
            block = bytearray(1 << 20)
            while (now_s := time.monotonic() - start_s) < seconds:
                came = sock.recv_into(block)
                if now_s > seconds / 2:
                    received[number] += came

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(controls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return received


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), mptcp="mptcp" in sys.argv[3:])
    else:
        print(json.dumps(fetch(sys.argv[2], float(sys.argv[3]), sys.argv[4:])))
