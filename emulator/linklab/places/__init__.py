"""Where a lab runs: in the guest or on the host."""
