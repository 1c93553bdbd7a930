"""Implements the commands of `linklab`, one file each."""
