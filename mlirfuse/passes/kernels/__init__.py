"""Passes on one tensor kernel and its launch: dimensions, parts of rows, merged reductions, its schedule."""
