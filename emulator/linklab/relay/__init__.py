"""Joins connections across network namespaces, for a lab and for a guest."""
