"""What everything else is made of: units, records of the run directory, paths."""
