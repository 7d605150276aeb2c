"""Passes on the traced function before it has kernels: views, casts, multiply-adds."""
