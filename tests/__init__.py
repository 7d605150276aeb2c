"""Tests. `unit` mirrors the packages of `mlirfuse`; `interpreter` runs kernels on the CPU,
`gpu` on a GPU; `support` is what they share.
"""
