"""Reads, generates and converts traces: series of a link's capacity over time.

`trace` defines a trace, `plain` reads and writes its file. Other formats have a file each, which
`registry` lists, and `format` defines what a format is. `tables`, `times`, `cells` and `intervals` read
tables for all of them, `probes` round trips. `importing` converts such a file into a plain one and
reports its `statistics`.

`generator` makes traces from a model. `recipes` lists those that ship in `profiles/traces`, and
`library` finds them by name. All files are read as streams.
"""
