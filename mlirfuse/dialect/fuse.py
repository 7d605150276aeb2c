"""The module that MLIR's bindings import when they meet an op of the `fuse` dialect, for the Python classes of its ops.

It has none: ops of the dialect are plain `ir.Operation`s. Without a module the bindings search for one at every op.
"""
