"""Kernels whose lanes follow memory orders, or that slide windows: tiles, layouts and candidates."""
