"""Hosts, cables, addresses and routes of the lab, and what lies outside it."""
