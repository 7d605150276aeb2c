"""Scalar and vector arithmetic to instructions: casts of narrow types, divisions, math functions, `mma.sync`."""
