"""Rate, queue, delay and loss of a link, with the kernel's queueing disciplines."""
