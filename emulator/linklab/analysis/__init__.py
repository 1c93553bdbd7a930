"""Gives runs as Python objects and tables, for analysis in other programs."""
