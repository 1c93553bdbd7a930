"""Reads and writes traces: series of a link's capacity over time.

`trace` defines a trace, `plain` reads and writes its file. `tables` and `times` read tables, also those
of other formats, which `importers` reads. `statistics` describes a trace.

`library` finds the traces in `profiles/traces` by name. All files are read as streams.
"""
