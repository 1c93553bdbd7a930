"""Runs a lab in the guest: inside a User Mode Linux kernel, in virtual time."""
