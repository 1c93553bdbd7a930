"""Writes finished runs into Prometheus."""
