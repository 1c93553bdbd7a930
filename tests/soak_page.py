"""Half an hour of a live lab's page: two tabs, a reader that never reads, and hands; by `make soak-page`.

First nobody looks, for a quarter of the time: that is what the page's cost is compared with. The lab's
process may not grow, and may use little of a core. Figures are printed as they come.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from conftest import environment
from lab_page import TOKEN, clicked, opened, typed
from linklab.commands.report_browser_test import Tab
from through_the_lab import Launch, ProxiedLab, proxied, served

LOOK_S = 5.0
"""How often the process is looked at."""

MOST_GROWN_BYTES = 8e6
"""By how much the process may grow from the first quarter of the watched time to its end."""

MOST_CPU_RATIO = 0.1
"""How much of a core two tabs may cost."""

SCENARIO = """name: soak-page
payload: {size: 1 MB}
links:
  wifi: {down: 12 Mbit/s, up: 5 Mbit/s, rtt: 20 ms}
  lte: {down: 8 Mbit/s, up: 4 Mbit/s, rtt: 40 ms}
"""


@dataclass
class Looks:
    """What was seen of the lab's process."""

    process: psutil.Process
    resident: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    seconds: float = 0.0

    async def watch(self, lab: ProxiedLab, seconds: float) -> None:
        """Looks for some seconds."""
        before, begun_s = self._cpu_s(), time.monotonic()
        while time.monotonic() < begun_s + seconds:
            await asyncio.sleep(LOOK_S)  # It is looked at from time to time.
            self.resident.append(self.process.memory_info().rss)
            self.threads.append(self.process.num_threads())
            self.late_s.append((await asyncio.to_thread(lab.status))["lateness_s"])
        self.cpu_s = self._cpu_s() - before
        self.seconds = time.monotonic() - begun_s

    def _cpu_s(self) -> float:
        spent = self.process.cpu_times()
        return float(spent.user + spent.system)

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_s / self.seconds

    @property
    def grown_bytes(self) -> int:
        """From the first quarter's most to the last look."""
        return self.resident[-1] - max(self.resident[: max(1, len(self.resident) // 4)])

    def __str__(self) -> str:
        late_ms = sorted(one * 1e3 for one in self.late_s)
        return (
            f"{self.seconds:.0f} s: {self.cpu_ratio:.3f} of a core, resident "
            f"{self.resident[0] / 1e6:.1f} to {self.resident[-1] / 1e6:.1f} MB, threads "
            f"{min(self.threads)} to {max(self.threads)}, late {late_ms[len(late_ms) // 2]:.1f} ms in "
            f"the median, {late_ms[-1]:.1f} ms at most"
        )


@contextlib.contextmanager
def never_read(lab: ProxiedLab) -> Iterator[None]:
    """A stream that is asked for and never read."""
    host, port = lab.address.split(":")
    with socket.create_connection((host, int(port))) as opened_socket:
        opened_socket.sendall(b"GET /news HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield


async def downloads(lab: ProxiedLab) -> None:
    """Downloads all the time, over both links."""
    proxy = urllib.request.ProxyHandler({"http": lab.proxy()})
    opener = urllib.request.build_opener(proxy)
    while True:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(lambda: opener.open(lab.origin, timeout=60).read())
        await asyncio.sleep(1)  # Not all the time.


async def hands(tab: Tab, draw: random.Random) -> None:
    """Changes something every few seconds."""
    for number in itertools.count():
        link = draw.choice(("wifi", "lte"))
        if number % 10 == 9:
            await clicked(tab, "As the scenario says", f"[aria-labelledby=link-{link}]")
        else:
            await typed(tab, f"{link}-down", f"{draw.randint(1, 12)} Mbit/s")
        await asyncio.sleep(4)  # As somebody who tries things.


async def soak(lab: ProxiedLab, directory: Path, seconds: float) -> list[Looks]:
    """What was seen without a page, and with two tabs, hands and a reader that never reads."""
    process = psutil.Process(lab.process.pid)
    alone, watched = Looks(process), Looks(process)
    loading = asyncio.create_task(downloads(lab))
    await asyncio.sleep(min(30.0, seconds / 8))  # Until all that is loaded late is there.
    await alone.watch(lab, seconds / 4)
    print("nobody looks:", alone, flush=True)
    url = f"http://{lab.address}/#token={TOKEN}"
    async with (
        opened(directory / "one", url) as tab,
        opened(directory / "two", url),
    ):
        working = asyncio.create_task(hands(tab, random.Random(1)))
        with never_read(lab):
            for part in range(4):
                one = Looks(process)
                await one.watch(lab, seconds * 3 / 16)
                print(f"two tabs, part {part + 1}:", one, flush=True)
                assert not working.done(), working.exception()
                watched.resident += one.resident
                watched.threads += one.threads
                watched.late_s += one.late_s
                watched.cpu_s += one.cpu_s
                watched.seconds += one.seconds
        working.cancel()
        heap = await tab.value("performance.memory.usedJSHeapSize")
        print(f"the page's own heap: {heap / 1e6:.1f} MB", flush=True)
    loading.cancel()
    print("two tabs:", watched, flush=True)
    return [alone, watched]


def main() -> int:
    """0 if nothing grew and the page cost little."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "served").mkdir()
        (directory / "served" / "file").write_bytes(os.urandom(10_000_000))
        file = directory / "soak-page.yaml"
        file.write_text(SCENARIO)
        launch = Launch(environment={**environment(), "LINKLAB_LIVE_TOKEN": TOKEN})
        with (
            served(directory / "served") as url,
            proxied(directory, file, f"{url}file", launch=launch) as lab,
        ):
            alone, watched = asyncio.run(soak(lab, directory, options.seconds))
    grown, cost = watched.grown_bytes, watched.cpu_ratio - alone.cpu_ratio
    print(f"grown by {grown / 1e6:.1f} MB; the page costs {cost:.3f} of a core")
    return 0 if grown < MOST_GROWN_BYTES and cost < MOST_CPU_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
