"""What users call: `mf.fuse`, its options, and what arguments are to the compiler.
The functions that a traced body calls are in `builder`, launching is in `runtime`.
"""
