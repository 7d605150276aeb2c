"""Digests of the PTX of some hundred kernels, names aside: whether a refactoring left the generated code as it was.

Only the public API builds the kernels, so that the package survives renames inside of mlirfuse. Two places know more:
`launch.py` reads the launch data of a compiled function, and `second_stage` in `rows.py` spells an option of `fuse`.
"""
