"""The commands of `linklab`."""
