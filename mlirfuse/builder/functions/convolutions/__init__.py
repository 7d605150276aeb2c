"""Convolutions and their gradients: arguments and extents, gathered views of windows, and the products over them."""
