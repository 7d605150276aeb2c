"""Passes that turn scheduled tensor kernels into tile programs."""
