"""Starts `linklab`, also as `python -m linklab`. From here on Ctrl-C ends it without a traceback.

The handler is set before all other imports, which take tenths of a second.
"""

import os
import signal
import sys

INTERRUPTED = 130

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Else it is ignored, as in the background of a script. Nothing is started yet that had to be ended.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # emulator/setup/python has it wait.


def program() -> None:
    """Runs this process' command line and ends the process."""
    try:
        from linklab.commands.cli import main  # Ctrl-C is caught from here on.

        code: object = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    for one in (signal.SIGINT, signal.SIGTERM):  # What is left takes an instant.
        signal.signal(one, signal.SIG_IGN)
    sys.exit(code)  # type: ignore[arg-type]


if __name__ == "__main__":
    program()
