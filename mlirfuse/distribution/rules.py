"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import access, elementwise, loops, moments, reductions

__all__ = ["access", "elementwise", "loops", "moments", "reductions"]
