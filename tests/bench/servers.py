"""Section `servers`: runs multilink's get, proxy and put at real servers and an odd one, beside
curl and aria2.

Each server serves in a lab, in virtual time, over two links of 40 and 20 Mbit/s.
"""

from __future__ import annotations

from dataclasses import asdict

from served import cells
from served.cells import OURS, Outcome
from served.kinds import SERVERS

from bench.common import Bench, Result, table, target

WHO = ("get", "proxy", "curl", "aria2", "put", "curl-put")
BESIDE = {"get": "curl", "proxy": "curl", "put": "curl-put"}
"""For each function of multilink, the other client that shows whether the server allows it."""
BYTES, ODD_BYTES = 20_000_000, 6_000_000
TARGET = 1.2
"""The largest allowed time divided by the links' least time, at a server with correct ranges."""
IN_A_LAB = 8
"""The number of the odd server's habits in one lab."""


def servers(bench: Bench) -> Result:
    """Get, proxy and put at the available servers and an odd one, beside curl and aria2."""
    size, odd_size = (BYTES // 4, ODD_BYTES // 3) if bench.quick else (BYTES, ODD_BYTES)
    asked = bench.scenarios or [*SERVERS, "odd"]
    clients = bench.clients or WHO
    matrices = []
    for name in asked:
        if name == "odd":
            continue
        if packages := cells.missing(name):
            bench.say(f"{name} is left out: not installed: {', '.join(packages)}")
            continue
        # A server that fetches the whole file for each range needs memory for all of these at a
        # time.
        least = size if SERVERS[name].ranges else size // 2
        matrices.append(cells.server(bench.work, name, least, clients))
    if "odd" in asked:
        program = cells.build_odd(bench.work)
        habits = [*cells.habits(program).items()]
        for first in range(0, len(habits), IN_A_LAB):
            few = dict(habits[first : first + IN_A_LAB])
            matrices.append(cells.odd(bench.work, f"odd-{first}", odd_size, program, few, clients))
    done = bench.all("servers", [one.words for one in matrices], parallel=bench.jobs or 2)
    found = [
        outcome
        for one, run in zip(matrices, done, strict=True)
        for outcome in one.outcomes(run.run_dir)
    ]
    ideal_s = cells.ideal_s(bench.work, size)
    _show(bench, found)
    bad = [one for one in found if one.kind != "right"]
    for one in bad:
        bench.say(f"{one.server}, {one.who}: {one.kind}: {one.said or 'without a word'}")
    return _verdicts(bench, found, ideal_s, size)


def _show(bench: Bench, found: list[Outcome]) -> None:
    shown = table("seconds at", *WHO, "wasted\nkB of get", gap=1)
    for server in dict.fromkeys(one.server for one in found):
        of = {one.who: one for one in found if one.server == server}
        wasted = of["get"].wasted_bytes if "get" in of else None
        shown.add_row(
            server,
            *(_cell(of.get(who)) for who in WHO),
            "" if wasted is None else f"{wasted / 1e3:.0f}",
        )
    bench.console.print(shown)


def _cell(one: Outcome | None) -> str:
    if one is None:
        return ""
    return f"{one.took_s:.2f}" if one.kind == "right" else f"[red]{one.kind}[/red]"


def _verdicts(bench: Bench, found: list[Outcome], ideal_s: float, size: int) -> Result:
    got = {(one.server, one.who) for one in found if one.kind == "right"}
    worse = [
        one for one in found if one.kind != "right" and (one.server, BESIDE.get(one.who)) in got
    ]
    wrong = [one for one in found if one.who in OURS and one.kind in ("wrong", "harms")]
    late = [
        one
        for one in found
        if one.who in ("get", "proxy")
        and one.server in SERVERS
        and SERVERS[one.server].ranges
        and one.kind == "right"
        and one.took_s > TARGET * ideal_s
    ]
    bench.say(f"{size / 1e6:.0f} MB take {ideal_s:.2f} s over both links at least")
    bench.say(target("multilink gets and puts all that curl does", not worse))
    bench.say(target("no wrong file, and none harmed", not wrong))
    bench.say(target(f"at most {TARGET} times what the links allow, with ranges", not late))
    for one in late:
        bench.say(f"{one.server}, {one.who}: {one.took_s / ideal_s:.2f} times")
    return {"bytes": size, "ideal_s": ideal_s, "cells": [asdict(one) for one in found]}
