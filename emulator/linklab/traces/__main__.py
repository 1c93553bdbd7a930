"""Makes the shipped traces again: python -m linklab.traces [DIRECTORY]."""

from __future__ import annotations

import argparse
from pathlib import Path

from linklab.traces import library
from linklab.traces.recipes import TRACES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m linklab.traces", description="Makes the traces that ship with linklab."
    )
    parser.add_argument("directory", nargs="?", type=Path, default=TRACES)
    for file in library.make_all(parser.parse_args().directory):
        print(file)


if __name__ == "__main__":
    main()
