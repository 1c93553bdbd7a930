"""Defines the limits of links, payloads and scenarios. Pure."""

from __future__ import annotations

from typing import Final

MIN_RATE_BPS: Final = 1_000
"""The least rate that a link is shaped to. Below it the queue is stopped."""

MAX_RATE_BPS: Final = 10_000_000_000
MAX_RTT_S: Final = 10.0

MIN_LENGTH_S: Final = 1e-3
"""The shortest duration."""

MAX_TIME_S: Final = 86_400.0
"""A day: the latest time of a scenario, and the longest duration, also of a recording."""

MIN_RESTART_S: Final = 0.01
"""The shortest time until a server that ended is started again. Computing takes no virtual time, so
one that fails at once would otherwise be started without end."""

MAX_SHIFT_S: Final = 21_600.0
"""The latest start of a client after its scenario: 6 h. Until then models are evaluated 50 times a
second."""

MAX_RUN_S: Final = 604_800.0
"""A week: the latest time in a run directory, also of a download outside the lab."""

MAX_LATE_S: Final = 0.25
"""If a link's change is applied later than this, the run's figures are not valid."""

MAX_PAYLOAD_BYTES: Final = 10_000_000_000

MAX_SENT_BYTES: Final = 2_000_000_000
"""The limit for data sent to the server. H2O's mruby cannot write, or seek to, 2 GiB or more."""

MAX_MESSAGE_BYTES: Final = 50_000_000
"""The limit for a message to the server and for its answer. Server and client keep several of both in
memory, and a guest has little."""

MAX_QUEUE_BYTES: Final = 1_000_000_000

MAX_SEED: Final = 2**63 - 1

MAX_RUNS: Final = 10_000
"""Runs of one client in one scenario. `runner.new_directory` has names for this many."""

MAX_SIDE_BY_SIDE: Final = 1024
"""Guests at the same time. No machine has more cores."""

MAX_TIMEOUT_S: Final = 30 * MAX_TIME_S
"""The longest duration of a run on the real clock. select(2) refuses very large timeouts."""

MAX_RETENTION_DAYS: Final = 36_500
