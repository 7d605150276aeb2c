"""Sums of products: `matmul`, `einsum`, `tensordot` and their kin, their notation and the ops that they emit."""
