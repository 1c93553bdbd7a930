"""YAML files: read within limits, value by value, by rows that say what a key means."""
