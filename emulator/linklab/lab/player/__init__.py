"""Plays the link models into the running lab over time."""
