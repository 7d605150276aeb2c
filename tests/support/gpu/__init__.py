"""Arrays, guards and stress for tests that launch kernels."""
