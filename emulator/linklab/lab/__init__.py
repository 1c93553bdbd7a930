"""Builds and runs the lab: hosts, cables, queueing disciplines, the player, H2O."""
