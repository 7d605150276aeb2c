"""From the `gpu` stage to PTX, with the pass `lower-x` in `x.py`. Modules of this folder handle whole kernels."""
