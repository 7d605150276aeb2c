"""Emission of vector ops on whole tiles from a kernel's tensor ops, for `passes.tile` and `passes.pipelining`."""
