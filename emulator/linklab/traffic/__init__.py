"""Defines the programs that send and receive a scenario's traffic."""
