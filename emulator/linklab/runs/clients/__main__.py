"""Prints the Debian packages of all peers, for the images of the guest and of the container."""

from linklab.runs import clients

print(*clients.packages())
