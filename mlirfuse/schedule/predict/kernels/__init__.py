"""The work of a kernel, one kind a file: one tile a block, multi-pass rows, persistent loops, contractions."""
