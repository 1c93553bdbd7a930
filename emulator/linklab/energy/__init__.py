"""Computes a device's energy by a model, from the links' activity that a run directory records."""
