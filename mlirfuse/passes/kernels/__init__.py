"""Passes on one tensor kernel and its launch: collapsed dimensions, split rows, merged reductions, the schedule."""
