"""Implements `linklab clean`: removes what linklab made outside run directories."""

from __future__ import annotations

import argparse

from linklab.core import scratch


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        action="store_true",
        help="remove the whole cache too: kernel, payloads, keys, Go",
    )


def run(options: argparse.Namespace) -> int:
    """Removes the files and prints what it removed. Returns 0."""
    for line in scratch.remove(cache=options.cache):
        print(line)
    return 0
