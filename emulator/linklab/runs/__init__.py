"""One run: prepared, executed, and what it came to."""
