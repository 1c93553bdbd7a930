"""Runs the programs of the lab: servers, the client's terminal, and the files they need."""
