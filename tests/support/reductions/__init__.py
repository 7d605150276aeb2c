"""Reductions with references, for the interpreter's and the GPU's tests."""
