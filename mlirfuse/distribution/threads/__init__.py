"""The fragments and coordinates of one thread in a tile, and scalar arithmetic; rules of ops are elsewhere."""
