"""Finds free ports of the loopback device for programs that a test starts."""

from linklab.core.free_ports import free_ports as free_ports


def free_port() -> int:
    """Returns a free port of the loopback device."""
    return free_ports(1)
