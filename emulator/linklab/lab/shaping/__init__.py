"""Shapes rate, queue, delay and loss of a link by the kernel's queueing disciplines."""
