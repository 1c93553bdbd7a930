"""Measures what linklab promises, for `make bench`, one section per file."""
