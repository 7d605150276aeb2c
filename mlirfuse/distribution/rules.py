"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import elementwise, loops, moments, reductions, transfers

__all__ = ["elementwise", "loops", "moments", "reductions", "transfers"]
