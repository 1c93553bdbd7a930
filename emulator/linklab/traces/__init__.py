"""Reads, generates and converts traces: series of a link's capacity over time.

`trace` defines a trace, `plain` reads and writes its file. `mahimahi`, `ucc`, `iperf3` and
`cellreplay` read other formats. `registry` lists these formats, and `format` defines what a format
is. `importing` converts such a file into a plain one and reports its `statistics`.

`generator` makes traces from a model. `recipes` lists those that ship in `profiles/traces`, and
`library` finds them by name. All files are read as streams.
"""
