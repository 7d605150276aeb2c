"""Passes on ops of the traced function: casts, multiply-adds, sums and the dimensions of products."""
