"""Runs campaigns: many runs, on one machine or several, gathered as run directories."""
