"""Passes on one tensor kernel and its launch: collapsed dimensions, merged reductions, the schedule."""
