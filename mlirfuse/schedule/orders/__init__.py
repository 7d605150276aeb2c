"""Elementwise kernels whose arrays lie in different memory orders: tiles, layouts, and what their accesses cost."""
