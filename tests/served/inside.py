"""Runs in the client's place of a lab: gets and puts files, and says how each came out.

usage: inside.py MULTILINK TASKS, a JSON file: `cells` is a list of {who, url},
`size` that of files to put. Prints a JSON object a line for each. Standard library alone.
"""

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT_S = 900
"""The most seconds of one cell. multilink gives up 300 s after the last byte."""
LINKS = ("--link", "wifi=wlan0", "--link", "lte=rmnet0")
DEVICES = ("wlan0", "rmnet0")


def carried() -> tuple[int, int]:
    """Returns the bytes that both devices have received and sent."""
    down = up = 0
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, figures = line.strip().partition(":")
        if name in DEVICES:
            words = figures.split()
            down, up = down + int(words[0]), up + int(words[8])
    return down, up


def sum_of(path: Path) -> str | None:
    """Returns the SHA-256 of a file, None if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def called(argv: list[str]) -> tuple[int, str, str]:
    """Runs a program. Returns its exit code, its output, and its last line of errors."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return 124, "", f"still running after {LIMIT_S} s"
    words = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()[-1:]
    return done.returncode, done.stdout, words[-1] if words else ""


class Client:
    """Runs the client programs, with the authority's certificate and a directory for files."""

    def __init__(self, multilink: str, work: Path, size: int) -> None:
        self.multilink = multilink
        self.ca = os.environ["LINKLAB_CA"]
        self.out = work / "out"
        self.new, self.old = work / "new", work / "old"
        source = random.Random(2)
        self.new.write_bytes(source.randbytes(size))
        self.old.write_bytes(source.randbytes(size // 3))
        self.new_sum = sum_of(self.new)

    def curl(self, *more: str) -> list[str]:
        """Returns the command of curl over the first link."""
        return ["curl", "-sS", "-f", "--cacert", self.ca, "--interface", DEVICES[0], *more]

    @contextlib.contextmanager
    def proxy(self) -> Iterator[str]:
        """Runs a proxy of multilink. Yields its address."""
        process = subprocess.Popen(
            [self.multilink, "proxy", "--listen", "127.0.0.1:0", *LINKS, "--ca-file", self.ca],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait()

    def get(self, who: str, url: str) -> tuple[int, str, str]:
        """Makes one of the clients get a file."""
        out = str(self.out)
        if who == "get":
            trust = (
                ("--checksum", f"sha-256={os.environ['LINKLAB_SHA256']}")
                if url.startswith("http:")
                else ()
            )
            return called(
                [
                    self.multilink,
                    "get",
                    url,
                    *LINKS,
                    "--ca-file",
                    self.ca,
                    "--json",
                    "-o",
                    out,
                    *trust,
                ]
            )
        if who == "aria2":
            return called(
                [
                    *("aria2c", "--no-conf", "--quiet", "--file-allocation=none"),
                    *("--console-log-level=error", f"--ca-certificate={self.ca}"),
                    *(
                        f"--multiple-interface={','.join(DEVICES)}",
                        "-s",
                        "2",
                        "-x",
                        "2",
                        "-k",
                        "1M",
                    ),
                    *("-d", str(self.out.parent), "-o", self.out.name, url),
                ]
            )
        if who == "curl":
            return called(self.curl("-o", out, url))
        with self.proxy() as address:
            if url.startswith("http:"):
                return called(["curl", "-sSf", "-o", out, "--proxy", address, url])
            return called(["curl", "-sSf", "-o", out, f"{address}/{url}"])

    def put_before(self, url: str) -> str | None:
        """Puts the old file. Returns the server's file then."""
        called(self.curl("-T", str(self.old), url))
        return self.stored(url)

    def stored(self, url: str) -> str | None:
        """Returns the SHA-256 of the server's file a moment later, None if it has none."""
        time.sleep(1)
        self.out.unlink(missing_ok=True)
        return sum_of(self.out) if called(self.curl("-o", str(self.out), url))[0] == 0 else None

    def put(self, who: str, url: str) -> tuple[int, str, str]:
        """Makes one of the clients put a file."""
        if who == "curl-put":
            return called(self.curl("-T", str(self.new), url))
        return called(
            [self.multilink, "put", str(self.new), url, *LINKS, "--ca-file", self.ca, "--json"]
        )


def one(client: Client, cell: dict[str, Any]) -> dict[str, Any]:
    """Runs a cell and returns its outcome. A put replaces an old file, and the result is fetched
    afterwards."""
    who, url = cell["who"], cell["url"]
    is_put = who.endswith("put")
    was = client.put_before(url) if is_put else None
    before, begun = carried(), time.monotonic()
    code, printed, said = client.put(who, url) if is_put else client.get(who, url)
    took_s, after = time.monotonic() - begun, carried()
    came = client.stored(url) if is_put else sum_of(client.out)
    wasted = None
    with contextlib.suppress(ValueError, KeyError):
        wasted = sum(link["wasted_bytes"] for link in json.loads(printed)["links"].values())
    for left in client.out.parent.glob("out*"):
        left.unlink()
    return {
        "who": who,
        "code": code,
        "took_s": took_s,
        "sha256": came,
        "wasted_bytes": wasted,
        "carried_bytes": after[is_put] - before[is_put],
        "said": said if code else "",
        "was": was,
        "put": client.new_sum,
    }


def main() -> None:
    """Runs the cells in the file of the argument."""
    tasks = json.loads(Path(sys.argv[2]).read_text())
    with tempfile.TemporaryDirectory() as work:
        client = Client(sys.argv[1], Path(work), tasks["size"])
        for cell in tasks["cells"]:
            print(json.dumps(one(client, cell)), flush=True)


if __name__ == "__main__":
    main()
