"""The user's interface: `mf.fuse`, its options, and the compile-time specs of arguments. The functions that a traced
body calls are in `builder`, launching is in `runtime`.
"""
