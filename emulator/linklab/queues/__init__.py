"""Defines queue disciplines: how a link queues and drops packets."""
