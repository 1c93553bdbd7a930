"""What a link, a payload and a scenario may be at most and at least. Pure."""

from __future__ import annotations

from typing import Final

MIN_RATE_BPS: Final = 1_000
"""The least rate that a link is shaped to; what falls below holds the queue instead."""

MAX_RATE_BPS: Final = 10_000_000_000
MAX_RTT_S: Final = 10.0

MIN_LENGTH_S: Final = 1e-3
"""The shortest time that something lasts."""

MAX_TIME_S: Final = 86_400.0
"""A day: the latest time of a scenario, and the longest that something lasts."""

MAX_SHIFT_S: Final = 21_600.0
"""The latest start of a client after its scenario: 6 h, in which models are asked 50 times a second."""

MAX_RUN_S: Final = 604_800.0
"""A week: the latest time in a run directory, also of a download outside the lab."""

MAX_LATE_S: Final = 0.25
"""A change of a link that comes later than this makes a run's figures worthless."""

MAX_PAYLOAD_BYTES: Final = 10_000_000_000

MAX_SENT_BYTES: Final = 2_000_000_000
"""Where the server gets more than requests for a file: of H2O's mruby neither a position in a file
nor what it writes at once reaches 2 GiB."""

MAX_MESSAGE_BYTES: Final = 50_000_000
"""A message to the server, and the answer to one: server and client have several of both in memory,
which in a guest is short."""

MAX_QUEUE_BYTES: Final = 1_000_000_000

MAX_SEED: Final = 2**63 - 1

MAX_RUNS: Final = 10_000
"""Runs of one client in one scenario: so many directories are told apart (`runner.new_directory`)."""

MAX_SIDE_BY_SIDE: Final = 1024
"""Guests at a time: more cores has no machine."""

MAX_TIMEOUT_S: Final = 30 * MAX_TIME_S
"""The longest wall-clock time that a run may take; select(2) takes no number however large."""

MAX_RETENTION_DAYS: Final = 36_500
