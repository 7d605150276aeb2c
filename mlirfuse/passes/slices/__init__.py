"""Slices of computed values, computed of slices."""
