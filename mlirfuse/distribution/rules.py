"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import elementwise, exp_sums, loops, moments, reductions, semaphores, transfers

__all__ = ["elementwise", "exp_sums", "loops", "moments", "reductions", "semaphores", "transfers"]
