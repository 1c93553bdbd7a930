"""Gives Python programs what the commands do: `linklab.run`, `compare`, `execute` and `live`.

The commands are written on this folder. They add options, printing and the progress bar.
"""
