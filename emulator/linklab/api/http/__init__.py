"""Serves the HTTP API of `linklab serve`: any language starts a lab, changes its links and stops it."""
