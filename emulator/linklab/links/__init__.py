"""A scenario's links as stacks of models, and what they could carry."""
