"""The guest place: the lab inside a User Mode Linux kernel, in virtual time."""
