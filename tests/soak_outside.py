"""An hour of many connections through a lab's proxies, by `make soak-outside`.

So many at a time, each over a link or all, by HTTP or SOCKS5: downloads, uploads, and such as are
broken off; together about half of what the links carry. Nothing may stand still, come wrong or stay
behind. On the real clock.
"""

import argparse
import asyncio
import collections
import contextlib
import hashlib
import json
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from free_ports import free_ports
from through_the_lab import PATIENCE_S, fetched, inside, served
from user_terminal import UserTerminal

STALL_S = 30.0
"""A connection without a byte for this time, at either end, has stalled."""

LOOK_S = 5.0
"""The interval in which an upload's progress at the origin is checked, if it gets no answer."""

PAUSES_S = (5.0, 15.0)
"""The range of pauses before an open connection is used, as in a browser. If 200 connections all
sent at full speed, each would get so little that TCP itself pauses for half a minute."""

REST_S = 150.0
"""After this time the proxies have closed idle connections, which they keep for 90 s."""

MOST_FILES = 12
"""The allowed growth of a process' open files."""

MOST_BYTES = 32e6
"""The allowed growth of a process' memory since a quarter of the time."""

SIZES_BYTES = (1_000, 20_000, 100_000, 400_000, 2_000_000)

SCENARIO = """name: soak-outside
payload: {size: 1 MB}
links:
  wifi: {down: 30 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}
  lte: {down: 12 Mbit/s, up: 5 Mbit/s, rtt: 50 ms}
"""


class Trouble(Exception):
    """A request went wrong. The message says how."""


class Soak:
    """Sends requests to a lab's proxies, and records the results."""

    def __init__(self, origin: str, digests: dict[int, str], first: int, until: float) -> None:
        self._origin = origin
        self._url = inside(origin)
        self._digests = digests
        self._first = first
        self._until = until
        self.done: collections.Counter[str] = collections.Counter()
        self.troubles: collections.Counter[str] = collections.Counter()
        self.bytes: collections.Counter[str] = collections.Counter()
        self.longest_pause_s = 0.0
        self.open = 0
        self._uploads = 0

    async def work(self, dice: random.Random) -> None:
        """Sends one request after the other until the time is over."""
        while time.monotonic() < self._until:
            kind = dice.choices(("download", "upload", "broken off"), (6, 2, 2))[0]
            scheme = dice.choice(("HTTP", "SOCKS5"))
            self.open += 1
            try:
                await self._request(dice, kind, scheme)
                self.done[f"{kind} by {scheme}"] += 1
            except (OSError, EOFError, Trouble) as error:
                self.troubles[f"{kind} by {scheme}: {type(error).__name__} {error}"[:160]] += 1
                await asyncio.sleep(1)
            finally:
                self.open -= 1

    async def _request(self, dice: random.Random, kind: str, scheme: str) -> None:
        size = dice.choices(SIZES_BYTES, (8, 8, 6, 4, 1))[0]
        port = self._first + dice.randrange(3)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            target = urlsplit(self._url)
            assert target.hostname is not None
            path = self._url if scheme == "HTTP" else "/"
            if scheme == "SOCKS5":
                host = target.hostname.encode()
                writer.write(b"\x05\x01\x00" + b"\x05\x01\x00\x03" + bytes([len(host)]) + host)
                writer.write((target.port or 80).to_bytes(2))
                if (said := await self._some(reader.readexactly(12), "at SOCKS5"))[3] != 0:
                    raise Trouble(f"SOCKS5 says {said[3]}")
            await asyncio.sleep(dice.uniform(*PAUSES_S))
            head = f"Host: {target.netloc}\r\nConnection: close\r\n"
            if kind == "upload":
                content = dice.randbytes(size)
                head += f"Content-Length: {size}\r\n"
                self._uploads += 1
                name = str(self._uploads)
                writer.write(f"POST {path}sum?{name} HTTP/1.1\r\n{head}\r\n".encode())
                for at in range(0, size, 1 << 16):
                    writer.write(content[at : at + (1 << 16)])
                    await self._some(writer.drain(), "sending", name)
                    self.bytes["up"] += len(content[at : at + (1 << 16)])
                answer = json.loads(b"".join([piece async for piece in self._body(reader, name)]))
                if answer != {"bytes": size, "sha256": hashlib.sha256(content).hexdigest()}:
                    raise Trouble("another upload came than was sent")
                return
            writer.write(f"GET {path}{size} HTTP/1.1\r\n{head}\r\n".encode())
            enough = dice.randrange(size) if kind == "broken off" else size + 1
            came, digest = 0, hashlib.sha256()
            async for piece in self._body(reader):
                came += len(piece)
                digest.update(piece)
                self.bytes["down"] += len(piece)
                if came > enough:
                    if dice.random() < 0.5:
                        writer.transport.abort()
                    return
            if digest.hexdigest() != self._digests[size]:
                raise Trouble(f"another file came than was asked for, or {came} of {size} bytes")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _body(self, reader: asyncio.StreamReader, upload: str = "") -> Any:
        """Yields the pieces of an answer with status 200. Raises Trouble for another."""
        wanted = reader.readuntil(b"\r\n\r\n")
        head = (await self._some(wanted, "before the answer", upload)).decode("latin-1")
        status, *lines = head.split("\r\n")
        if status.split(" ")[1] != "200":
            raise Trouble(status)
        fields = dict(line.lower().split(": ", 1) for line in lines if line)
        left = int(fields["content-length"])
        while left:
            piece = await self._some(reader.read(min(left, 1 << 16)), "in the answer")
            if not piece:
                raise Trouble(f"{left} bytes are missing")
            left -= len(piece)
            yield piece

    async def _some(self, wanted: Any, where: str, upload: str = "") -> Any:
        """Waits for something. Raises Trouble if nothing arrives, and for an upload, nothing at the
        origin either."""
        begun, come = time.monotonic(), 0
        task = asyncio.ensure_future(wanted)
        try:
            while not (await asyncio.wait({task}, timeout=LOOK_S))[0]:
                now_come = await asyncio.to_thread(self._come, upload) if upload else 0
                if now_come > come:
                    begun, come = time.monotonic(), now_come
                elif time.monotonic() - begun >= STALL_S:
                    raise Trouble(f"STALL {where}")
            return task.result()
        finally:
            task.cancel()
            self.longest_pause_s = max(self.longest_pause_s, time.monotonic() - begun)

    def _come(self, upload: str) -> int:
        """Returns the bytes of an upload that have reached the origin."""
        with urllib.request.urlopen(f"{self._origin}sum?{upload}", timeout=10) as answer:
            return int(answer.read())


class Watch:
    """Watches the lab's own reports during use: its programs' resources, inside and outside, and
    its lateness."""

    def __init__(self, user: UserTerminal, address: str) -> None:
        self._user = user
        self._address = address
        self._whole = psutil.Process(user.process.pid)
        self._stop = threading.Event()
        self.views: list[tuple[float, dict[str, float]]] = []
        self.late_s: list[float] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                text = self._user.expect(r"\{[^{}]*\}\r?\n", patience_s=60)
                with urllib.request.urlopen(f"http://{self._address}/status", timeout=10) as answer:
                    self.late_s.append(json.load(answer)["lateness_s"])
            except (AssertionError, OSError):
                continue
            found = json.loads(text[text.rindex("{") :])
            for process in [self._whole, *self._whole.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    name = process.name()
                    if name in ("python", "python3", "slirp4netns"):
                        words = process.cmdline()
                        name = "relay outside" if any("relay.py" in one for one in words) else name
                        for what, much in (
                            ("files", process.num_fds()),
                            ("bytes", process.memory_info().rss),
                        ):
                            key = f"{name}_{what}"
                            found[key] = found.get(key, 0) + much
            self.views.append((time.monotonic(), found))

    def last(self) -> dict[str, float]:
        """Returns the newest report."""
        return self.views[-1][1]

    def at(self, when: float) -> dict[str, float]:
        """Returns the first report after a time."""
        return next(view for at, view in self.views if at >= when)

    def close(self) -> None:
        """Stops watching."""
        self._stop.set()
        self._thread.join()


def leaks(before: dict[str, float], quarter: dict[str, float], end: dict[str, float]) -> list[str]:
    """Returns what was left behind, from the reports before, at a quarter and at the end."""
    found = []
    for name in end:
        if name.endswith(("_files", "processes")) and end[name] > before[name] + MOST_FILES:
            found.append(f"{name}: {before[name]:.0f} before, {end[name]:.0f} in the end")
        if name.endswith("_bytes") and name != "free_bytes":
            grown = end[name] - quarter[name]
            if grown > MOST_BYTES:
                found.append(f"{name}: grown by {grown / 1e6:.0f} MB since a quarter of the time")
    return found


@contextlib.contextmanager
def lab(directory: Path, origin: str, first: int, address: str) -> Iterator[UserTerminal]:
    """Runs a lab with proxies, watched from within."""
    file = directory / "soak-outside.yaml"
    file.write_text(SCENARIO)
    view = Path(__file__).with_name("inside_view.py")
    with UserTerminal(
        *(directory, "shell", file, "--place", "guest", "--out", directory / "runs"),
        *("--origin", origin, "--listen-proxy", first, "--listen", address),
        *("--", sys.executable, view, 2),
        columns=400,
    ) as user:
        yield user


def soak(seconds: float, connections: int, seed: int, directory: Path) -> dict[str, Any]:
    """Runs the test. Returns its results."""
    served_files = directory / "served"
    served_files.mkdir()
    digests = {}
    for size in SIZES_BYTES:
        content = hashlib.shake_128(str(size).encode()).digest(size)
        (served_files / str(size)).write_bytes(content)
        digests[size] = hashlib.sha256(content).hexdigest()
    first = free_ports(4)
    address = f"127.0.0.1:{first + 3}"
    with served(served_files) as origin, lab(directory, origin, first, address) as user:
        watch = Watch(user, address)
        deadline = time.monotonic() + PATIENCE_S
        proxy = f"http://127.0.0.1:{first}"
        while fetched(f"{inside(origin)}1000", proxy) is None or not watch.views:
            if time.monotonic() > deadline or user.process.poll() is not None:
                raise Trouble(f"no lab: {user.seen[-2000:]}")
            time.sleep(0.2)
        before, begun = watch.last(), time.monotonic()
        made = Soak(origin, digests, first, begun + seconds)

        async def all_at_once() -> list[int]:
            dice = random.Random(seed)
            workers = [
                asyncio.create_task(made.work(random.Random(dice.random())))
                for _ in range(connections)
            ]
            open_at = []
            while time.monotonic() < begun + seconds:
                await asyncio.sleep(1)
                open_at.append(made.open)
            await asyncio.gather(*workers)
            return open_at

        open_at = asyncio.run(all_at_once())
        took_s = time.monotonic() - begun
        busy = watch.last()
        left = leaks(before, watch.at(begun + seconds / 4), busy)
        rested = time.monotonic() + REST_S
        while time.monotonic() < rested:
            time.sleep(2)
            left = leaks(before, watch.at(begun + seconds / 4), watch.last())
            if not left:
                break
        late_s = sorted(watch.late_s)
        report = {
            "seconds": round(took_s, 1),
            "connections at a time": {"median": statistics.median(open_at), "least": min(open_at)},
            "requests": dict(sorted(made.done.items())),
            "troubles": dict(made.troubles.most_common()),
            "stalls": sum(n for what, n in made.troubles.items() if "STALL" in what),
            "megabytes": {way: round(n / 1e6, 1) for way, n in made.bytes.items()},
            "Mbit/s": {way: round(n * 8e-6 / took_s, 2) for way, n in made.bytes.items()},
            "longest pause, s": round(made.longest_pause_s, 2),
            "late at the worst within seconds, ms": {
                f"p{part}": round(late_s[min(len(late_s) - 1, len(late_s) * part // 100)] * 1e3, 2)
                for part in (50, 90, 99, 100)
            },
            "held before": before,
            "held in the end": busy,
            "held after a rest": watch.last(),
            "leaks": left,
        }
        watch.close()
    return report


def main() -> int:
    """Returns 0 if nothing stalled, was wrong or was left behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        report = soak(options.seconds, options.connections, options.seed, Path(directory))
    print(json.dumps(report, indent=2))
    return 1 if report["troubles"] or report["leaks"] else 0


if __name__ == "__main__":
    sys.exit(main())
