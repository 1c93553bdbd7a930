"""What `make bench` runs: figures that linklab promises, one section per file."""
