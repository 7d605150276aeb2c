"""Utilities for every package, independent of kernels: dtypes, strides, diagnostics, dataclasses as data, helpers of
the bindings.
"""
