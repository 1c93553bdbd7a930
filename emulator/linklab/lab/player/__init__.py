"""The player: it applies the link models to the running lab over time."""
