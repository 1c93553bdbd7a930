"""Services on all addresses, on the server and on the client, and who answers when they are asked.

usage: wildcards.py serve
       wildcards.py ask SECONDS DEVICE...

`serve` is the server's program. `ask` prints one line of JSON for each question: which it was, who was
asked, who answered, as whom the asked saw the asker. Meanwhile each side serves the other. `ask` asks
at once, and again after SECONDS.
"""

import contextlib
import json
import selectors
import socket
import subprocess
import sys
import threading
import time
from typing import Any

SERVER = "10.0.0.1"
CONTROL_PORT = 443
PORTS = {"0.0.0.0": 7000, "::": 7001}
ANY_PORTS = {"0.0.0.0": 50000, "::": 50001}
"""The ports that a socket gets without naming one (ip_local_port_range)."""

PATIENCE_S = 0.5
KINDS = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}


def bound(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """Opens a socket on all addresses. On all of IPv6 it also receives IPv4."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


def plain(address: str) -> str:
    return address.removeprefix("::ffff:")


def serve() -> None:
    """Tells each client the address that it sees of it."""
    with selectors.DefaultSelector() as selector:
        for address, port in [*PORTS.items(), *ANY_PORTS.items()]:
            for kind in KINDS.values():
                selector.register(bound(address, port, kind), selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                sock: Any = key.fileobj
                if sock.type == socket.SOCK_DGRAM:
                    _, who = sock.recvfrom(100)
                    sock.sendto(plain(who[0]).encode(), who)
                else:
                    connection, who = sock.accept()
                    with connection:
                        connection.sendall(plain(who[0]).encode())


def ask(
    protocol: str, to: tuple[str, int], *, device: str = "", source: str = ""
) -> dict[str, str]:
    """Asks an address. Returns who answered, and the address that the answerer saw."""
    with socket.socket(socket.AF_INET, KINDS[protocol]) as sock:
        sock.settimeout(PATIENCE_S)
        if device:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        if source:
            sock.bind((source, 0))
        try:
            if protocol == "tcp":
                sock.connect(to)
                return {"answered": sock.getpeername()[0], "seen": sock.recv(100).decode()}
            sock.sendto(b"?", to)
            said, who = sock.recvfrom(100)
            return {"answered": who[0], "seen": said.decode()}
        except OSError as error:
            return {"answered": str(error), "seen": ""}


def control() -> None:
    """Asks on behalf of the client."""
    with bound("0.0.0.0", CONTROL_PORT, socket.SOCK_STREAM) as listening:
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("rw") as stream:
                for line in stream:
                    protocol, address, port = json.loads(line)
                    print(json.dumps(ask(protocol, (address, port))), file=stream, flush=True)


def address_of(device: str) -> str:
    shown = subprocess.run(
        ["ip", "-json", "-4", "address", "show", "dev", device], capture_output=True, check=True
    ).stdout
    return str(json.loads(shown)[0]["addr_info"][0]["local"])


def ask_all(devices: list[str]) -> None:
    addresses = {device: address_of(device) for device in devices}

    def say(asked: str, own: str, question: str, answer: dict[str, str]) -> None:
        print(json.dumps({"asked": asked, "own": own, "question": question, **answer}), flush=True)

    with (
        socket.create_connection((SERVER, CONTROL_PORT)) as connection,
        connection.makefile("rw") as stream,
    ):
        for protocol in KINDS:
            for port in [*PORTS.values(), *ANY_PORTS.values()]:
                words = f"{protocol} {port}"
                first = addresses[devices[0]]
                say(SERVER, first, words, ask(protocol, (SERVER, port)))
                for device, own in addresses.items():
                    found = ask(protocol, (SERVER, port), device=device)
                    say(SERVER, own, f"{words} by {device}", found)
                    found = ask(protocol, (SERVER, port), source=own)
                    say(SERVER, own, f"{words} from {own}", found)
            for port in PORTS.values():
                for own in addresses.values():
                    print(json.dumps((protocol, own, port)), file=stream, flush=True)
                    found = json.loads(stream.readline())
                    say(own, "", f"{protocol} {port} by the server", found)


def main() -> None:
    what, *words = sys.argv[1:]
    if what == "serve":
        threading.Thread(target=control, daemon=True).start()
        serve()
    threading.Thread(target=serve, daemon=True).start()
    ask_all(words[1:])
    time.sleep(float(words[0]))
    ask_all(words[1:])


with contextlib.suppress(KeyboardInterrupt):
    main()
