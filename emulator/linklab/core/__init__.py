"""Provides what all folders use: units, link state, records of a run directory, paths."""
