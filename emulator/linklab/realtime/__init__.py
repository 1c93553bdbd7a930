"""Runs a lab in real time that the user can watch and change."""
