"""From the `gpu` stage to PTX: one boundary a file, each a pass named `lower-*`; `to_ptx` is upstream's end of it."""
