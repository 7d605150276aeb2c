"""Passes from the traced function to one thread's code. A file is one pass, `fuse-x` in `x.py`, or a helper beside it.
The subpackages follow the order of the pipeline; each imports only those before it.
"""
