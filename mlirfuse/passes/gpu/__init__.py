"""Passes that make and refine one thread's code: distribution, dependent launches, L2 policies, verification."""
