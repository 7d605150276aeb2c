"""Analyses of kernels for passes: loops, reductions, contractions, memory, and which ops share a kernel.
Modules here neither change IR nor choose schedules.
"""
