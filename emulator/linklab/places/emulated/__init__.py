"""Runs guests in an emulated machine, where User Mode Linux cannot run itself."""
