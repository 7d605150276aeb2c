"""The module that MLIR's bindings import for the Python classes of the `fuse` dialect's ops.

The dialect has no such classes, as its ops are plain `ir.Operation`s. Without this module, the bindings would search
for one at every op.
"""
