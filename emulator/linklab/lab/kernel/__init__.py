"""Talks to the Linux kernel: netlink, network namespaces, sockets and timers."""
