"""Finished runs into Prometheus."""
