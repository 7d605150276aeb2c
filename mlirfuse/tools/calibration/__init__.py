"""`mlirfuse calibrate` measures each quantity by a microbenchmark, and prints it beside the shipped one.

The model is kept in the user's cache directory, or in `--out FILE`. `--dry-run` lists the microbenchmarks; `--only`
runs those of some quantities, and keeps the values of the others.

Times are medians of replayed CUDA graphs. The time of an iteration of a kernel's loop is the slope over one, two and
three times as many iterations, so that no launch is in it. Most are run three times; a spread above the expected one is
coloured. A benchmark that hangs, faults or gives what cannot be true keeps the value that there was. Kernels are PTX
(`mlirfuse/tools/calibration/kernel.py`) that mlirfuse assembles, or functions that it compiles.
"""
