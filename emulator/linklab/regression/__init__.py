"""Implements `linklab regress`: compares a suite of downloads with its baseline."""
