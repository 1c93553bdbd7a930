"""Reads, writes and generates traces: series of a link's capacity over time.

`trace` defines a trace, `plain` reads and writes its file. `tables` and `times` read tables, also those
of other formats, which `importers` reads. `statistics` describes a trace.

`generator` makes traces from a model. `recipes` lists those that ship in `profiles/traces`, and
`library` finds them by name. All files are read as streams.
"""
