"""The parts of a schedule that some kernels add, and their checks: contractions, transposed tiles, persistent loops."""
