"""Holds the plugin of pytest: fixtures, baselines, and what is shown of a failed test's links."""
