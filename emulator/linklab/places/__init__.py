"""Runs a lab in the guest or on the host."""
