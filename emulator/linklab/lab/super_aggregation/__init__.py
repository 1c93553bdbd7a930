"""Implements the mechanisms of super-aggregation (Tsao, Sanadhya, Sivakumar 2015, see
REFERENCES.md)."""
