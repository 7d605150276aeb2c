"""Passes from the traced function to one thread's code. A file is one pass, `fuse-x` in `x.py`, or a helper beside it.
The rooms follow the pipeline; a room imports those before it alone.
"""
