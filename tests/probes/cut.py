"""Sends bytes over TCP, and tells how connections end.

`serve PORT…` answers a request on each port with a megabyte, and prints how connections failed.
`get HOST PORT TIMES PAUSE` asks so often, and prints a JSON list for each
connection: received bytes, the error's name, and the seconds of each receipt and of the end.
"""

from __future__ import annotations

import errno
import json
import socket
import sys
import threading
import time
from typing import Any

SIZE = 1_000_000
REQUEST = b"?" * 1000


def answer(connection: socket.socket) -> None:
    try:
        with connection:
            connection.recv(1)
            connection.sendall(bytes(SIZE))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
    except OSError as error:
        print(errno.errorcode[error.errno or 0], flush=True)


def serve(ports: list[int]) -> None:
    for port in ports:
        threading.Thread(target=accept, args=(port,)).start()


def accept(port: int) -> None:
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as sock:
        while True:
            threading.Thread(target=answer, args=(sock.accept()[0],)).start()


def get(host: str, port: int, start_s: float) -> list[Any]:
    received, seen_s, failed = 0, [], ""
    try:
        with socket.create_connection((host, port)) as connection:
            connection.sendall(REQUEST)
            while data := connection.recv(1 << 20):
                received += len(data)
                seen_s.append(time.monotonic() - start_s)
    except OSError as error:
        failed = errno.errorcode[error.errno or 0]
    return [received, failed, seen_s, time.monotonic() - start_s]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve([int(one) for one in sys.argv[2:]])
    else:
        begun_s = time.monotonic()
        _, _, to, number, times, pause = sys.argv
        for k in range(int(times)):
            time.sleep(max(0.0, begun_s + k * float(pause) - time.monotonic()))
            print(json.dumps(get(to, int(number), begun_s)), flush=True)
