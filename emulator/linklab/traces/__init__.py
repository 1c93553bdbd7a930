"""Traces: recorded or generated series of what a link could carry.

`trace` says what a trace is, `plain` reads and writes its file. `mahimahi`, `ucc`, `iperf3`
and `cellreplay` read what others recorded; `registry` lists these formats, and `format` says what
each of them is. `importing` turns such a file into a plain one and tells its `statistics`.
`generator` makes traces from a model, `recipes` says which ones ship in `profiles/traces`, and
`library` finds those by name. Everything is streamed.
"""
