"""Grafana's dashboards: what they ask, how they look, one file for each."""
