"""Prints a row sum at the gpu stage."""

import sys

import mlirfuse as mf


def row_sums(x):
    return mf.sum(x, axis=-1)


compiled = mf.fuse(row_sums).lower(mf.TensorSpec((None, 64), mf.float32)).compile()
sys.stdout.write(compiled.as_text("gpu"))
