"""What a lab's processes hold, from within, as a line of JSON every few seconds; runs in the lab.

usage: inside_view.py SECONDS
"""

import json
import sys
import time

import psutil

PROGRAMS = ("multilink", "relay.py")
"""The programs between the links and the outside, by a word of their command lines."""


def look() -> dict[str, float]:
    """Returns open files and memory of these programs together, the number of processes, and the
    free memory."""
    found: dict[str, float] = {"processes": 0, "free_bytes": psutil.virtual_memory().available}
    for name in PROGRAMS:
        found |= {f"{name}_files": 0, f"{name}_bytes": 0}
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            found["processes"] += 1
            for name in PROGRAMS:
                if name in words:
                    found[f"{name}_files"] += process.num_fds()
                    found[f"{name}_bytes"] += process.memory_info().rss
        except psutil.Error:
            continue
    return found


if __name__ == "__main__":
    while True:
        print(json.dumps(look()), flush=True)
        time.sleep(float(sys.argv[1]))
