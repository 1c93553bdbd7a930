"""`linklab clean`: removes what linklab made on this machine outside run directories."""

from __future__ import annotations

import argparse

from linklab.core import scratch


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `linklab clean`."""
    parser.add_argument(
        "--cache", action="store_true", help="all of the cache too: kernel, payloads, keys, Go"
    )


def run(options: argparse.Namespace) -> int:
    """Removes and says what."""
    for line in scratch.remove(cache=options.cache):
        print(line)
    return 0
