"""What a queue has sent beyond what its rates allowed up to now, in bytes. Pure.

A shaper that sends a frame and then waits owes that frame until its time is over. A wait counted
in seconds at the old rate is wrong once the rate changes: a frame begun at 1 Mbit/s holds a link
for 12 ms, in which 300 Mbit/s would have carried 450 kB. Counted in bytes, and paid off at the
rate of the moment, a queue that never runs empty sends the integral of its rates.
"""

from __future__ import annotations


class Debt:
    """The debt of one queue; negative where it lags behind, as timers that come late make it.

    `slack_s` is how long a lag may be that is caught up, in seconds at the rate of the moment.
    """

    def __init__(self, slack_s: float = 0.0) -> None:
        self._slack_s = slack_s
        self._now_ns = 0
        self._sent_bytes = 0
        self._rate_bps = 0.0
        self.bytes = 0.0

    def pay(self, now_ns: int, sent_bytes: int, *, is_backlogged: bool) -> None:
        """Pays off at the rate since the last call; `sent_bytes` counts from the start.

        What an empty queue could have sent is lost, and so is a lag that is longer than the slack.
        """
        allowed_bytes = self._rate_bps / 8e9 * (now_ns - self._now_ns)
        self.bytes += sent_bytes - self._sent_bytes - allowed_bytes
        lag_bytes = self._rate_bps / 8 * self._slack_s if is_backlogged else 0.0
        self.bytes = max(self.bytes, -lag_bytes)
        self._now_ns, self._sent_bytes = now_ns, sent_bytes

    def go_on(self, rate_bps: float) -> None:
        """From the last payment on the queue may send at another rate; 0 while it is held."""
        self._rate_bps = rate_bps
