"""`python -m linklab.places.guest.lock_trees`: makes both images again and prints their tree hashes.

emulator/setup/lock-image runs it and writes the hashes into image.lock.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from linklab.places.guest import image
from linklab.places.guest.locked import lock


def main() -> int:
    for name in ("guest", "kernel"):
        if name not in lock().packages:
            continue
        with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as directory:
            root = Path(directory) / "root"
            image.make(name, root, Path(directory))
            print(f"tree {name} {image.tree_hash(root)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
