"""Loads and launches kernels. The only package that imports CuPy, and it does so when first asked to touch a GPU.
What a kernel needs of a launch was read out of the IR by `compiler`.
"""
