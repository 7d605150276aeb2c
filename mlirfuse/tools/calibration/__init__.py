"""Microbenchmarks that measure the quantities of a `MachineModel` on a GPU, for `mlirfuse calibrate`.

`table.BENCHMARKS` has them all. A benchmark is written against `benchmark.Gpu`, so that tests run it without a device;
its kernels are PTX (`kernel`), which mlirfuse's assembler assembles, or functions that mlirfuse itself compiles.
"""
