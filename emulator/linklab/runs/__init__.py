"""Prepares and executes runs, and computes their figures."""
