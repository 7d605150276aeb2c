"""What one thread holds of a tile, where it stands in it, and scalar arithmetic. No rule of an op."""
