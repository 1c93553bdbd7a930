"""Reads YAML files within limits, value by value, by tables that describe every key."""
