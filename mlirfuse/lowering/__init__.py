"""From the `gpu` stage to PTX: one boundary a file, the pass `lower-x` in `x.py`. Here: whole kernels."""
