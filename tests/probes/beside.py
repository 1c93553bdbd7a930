"""What one connection gets of a link beside another program.

usage: beside.py DEVICE SECONDS [COMMAND…]

The command begins; two seconds later curl fetches the scenario's file over the device for so many
seconds, of which how many bytes came is printed. The command, which must still be at work then, is
ended.
"""

import os
import subprocess
import sys
import tempfile
import time

HEAD_START_S = 2.0

device, seconds, command = sys.argv[1], sys.argv[2], sys.argv[3:]
with tempfile.TemporaryDirectory() as directory:
    other = subprocess.Popen(command, cwd=directory, stdout=sys.stderr) if command else None
    time.sleep(HEAD_START_S)
    curl = subprocess.run(
        ["curl", "-s", "--interface", device, "--cacert", os.environ["LINKLAB_CA"],
         "--max-time", seconds, "-o", os.devnull, "-w", "%{size_download}", os.environ["LINKLAB_URL"]],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if other is not None:
        if other.poll() is not None:
            sys.exit(f"{command[0]} ended too early")
        other.terminate()
        other.wait()
print(curl.stdout)
