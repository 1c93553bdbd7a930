"""Runs a relay: joins network namespaces, by connections and datagrams.

It is a separate program, so that it does not delay the player. Its argument is a list of `Rule`s as
JSON. It runs in the namespace from which it connects, and inherits sockets of the other namespace.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

if not __package__:  # Python runs this directory in isolation, so no package is found yet.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from linklab.relay import faults
from linklab.relay.connections import free, listen
from linklab.relay.flows import Flows
from linklab.relay.rule import Rule


async def serve(rules: list[Rule]) -> None:
    """Serves the rules until the process is ended."""
    flows = Flows()
    breaking = faults.Relay() if any(rule.get("breaks") for rule in rules) else None
    for rule in rules:
        sock = socket.socket(fileno=rule["descriptor"])
        sock.setblocking(False)
        named, lanes = rule.get("to"), rule.get("lanes")
        to = named and (named[0], named[1])
        if rule.get("udp"):
            flows.take(sock, to)
        elif breaking is not None:
            await breaking.listen(sock)
        else:
            await listen(
                sock,
                to,
                greets=rule.get("greets", False),
                lanes=free((host, port) for host, port in lanes) if lanes else None,
                associates=rule.get("associates", False),
            )
    if breaking is not None:
        asyncio.get_running_loop().add_reader(sys.stdin, _follow, breaking)
    await asyncio.Event().wait()


def _follow(breaking: faults.Relay) -> None:
    """Takes on the faults in a line of input, and says when they are in force."""
    said = json.loads(sys.stdin.readline())
    breaking.set({"down": faults.Faults(**said["down"]), "up": faults.Faults(**said["up"])})
    print(flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The process that started the relay ends it.
    asyncio.run(serve(json.loads(sys.argv[1])))
