"""A lab in real time, to be watched and changed."""
