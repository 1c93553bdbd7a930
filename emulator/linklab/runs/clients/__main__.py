"""Prints the Debian packages of all peers. The images of the guest and of the container are made with them."""

from linklab.runs import clients

print(*clients.packages())
