"""Gathered views of computed values: what they are of is computed where it is read."""
