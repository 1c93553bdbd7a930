"""Prints to the user's terminal: escaped text, and the progress bar."""
