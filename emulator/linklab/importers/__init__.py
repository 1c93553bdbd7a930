"""Makes traces of recordings that other programs and projects made.

Each format has a file, which `registry` lists, and `format` defines what a format is. Data sets of
tables share `data_sets`; data_sets.yaml has their columns. `cells` and `intervals` read their lines,
`probes` makes samples of round trips. `importing` converts a file into linklab's CSV and reports its
statistics. All files are read as streams.
"""
