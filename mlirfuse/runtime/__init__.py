"""Loads and launches kernels. The only package that imports CuPy, and it does so when first asked to touch a GPU.
The launch metadata of kernels comes from `compiler`, which reads it from the IR.
"""
