"""Runs as Python objects and tables, for people who compute on. Made for others to import."""
