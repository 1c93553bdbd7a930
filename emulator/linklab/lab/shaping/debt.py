"""Computes what a queue has sent beyond what its rates allowed so far, in bytes. Pure.

A shaper that sends a frame and then waits owes that frame until the wait ends. A wait counted in
seconds at the old rate is wrong once the rate changes. A frame begun at 1 Mbit/s blocks a link for
12 ms, in which 300 Mbit/s would have carried 450 kB. This debt is counted in bytes and paid off at
the current rate. So a queue that never runs empty sends the integral of its rates.
"""

from __future__ import annotations


class Debt:
    """Holds the debt of one queue. It is negative if the queue lags behind, because timers are
    late.

    `slack_s` is the longest lag that is caught up, in seconds at the current rate.
    """

    def __init__(self, slack_s: float = 0.0) -> None:
        self._slack_s = slack_s
        self._now_ns = 0
        self._sent_bytes = 0
        self._rate_bps = 0.0
        self.bytes = 0.0

    def pay(self, now_ns: int, sent_bytes: int, *, is_backlogged: bool) -> None:
        """Pays off at the rate since the last call. `sent_bytes` counts from the start.

        What an empty queue could have sent is lost. So is a lag beyond the slack.
        """
        allowed_bytes = self._rate_bps / 8e9 * (now_ns - self._now_ns)
        self.bytes += sent_bytes - self._sent_bytes - allowed_bytes
        lag_bytes = self._rate_bps / 8 * self._slack_s if is_backlogged else 0.0
        self.bytes = max(self.bytes, -lag_bytes)
        self._now_ns, self._sent_bytes = now_ns, sent_bytes

    def go_on(self, rate_bps: float) -> None:
        """Sets the queue's rate from the last payment on, 0 while it is held."""
        self._rate_bps = rate_bps
