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


def sum_of(path: Path) -> str | None:
    """Returns the SHA-256 of a file, None if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def called(argv: list[str]) -> tuple[int, str]:
    """Runs a program. Returns its exit code and its last line of errors."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"still running after {LIMIT_S} s"
    words = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()[-1:]
    return done.returncode, words[-1] if words else ""


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
        return ["curl", "-sS", "-f", "--cacert", self.ca, "--interface", "wlan0", *more]

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

    def get(self, who: str, url: str) -> tuple[int, str]:
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

    def put(self, url: str) -> tuple[int, str]:
        """Puts a file."""
        return called(
            [self.multilink, "put", str(self.new), url, *LINKS, "--ca-file", self.ca, "--json"]
        )


def one(client: Client, cell: dict[str, Any]) -> dict[str, Any]:
    """Runs a cell and returns its outcome. A put replaces an old file, and the result is fetched
    afterwards."""
    who, url = cell["who"], cell["url"]
    is_put = who == "put"
    was = client.put_before(url) if is_put else None
    code, said = client.put(url) if is_put else client.get(who, url)
    came = client.stored(url) if is_put else sum_of(client.out)
    for left in client.out.parent.glob("out*"):
        left.unlink()
    return {
        "who": who,
        "code": code,
        "sha256": came,
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
