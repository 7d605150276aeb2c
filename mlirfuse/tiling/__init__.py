"""Turning the tensor ops of a kernel into vector ops on whole tiles; shared by the fuse-tile-* passes."""
