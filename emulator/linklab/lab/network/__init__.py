"""Defines hosts, cables, addresses and routes of the lab, and its connection to the outside."""
