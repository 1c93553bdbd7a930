"""Builds a scenario's links as stacks of models, and computes what they could carry."""
