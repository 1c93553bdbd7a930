"""Multipath TCP of the kernel, and what decides which links it uses."""
