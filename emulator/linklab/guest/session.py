"""What runs inside the guest after its init: one execution, then power off."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

RB_POWER_OFF = 0x4321FEDC
EXIT_FILE = "guest-exit"


def main() -> None:
    """Executes the run directory, leaves the exit code in `guest-exit`, ends the guest."""
    from linklab.execution import main as execute
    from linklab.paths import GUEST_RUN_DIR

    code = execute([str(GUEST_RUN_DIR)])
    Path(GUEST_RUN_DIR, EXIT_FILE).write_text(f"{code}\n")
    os.sync()
    ctypes.CDLL(None).reboot(RB_POWER_OFF)


if __name__ == "__main__":
    main()
