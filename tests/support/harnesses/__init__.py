"""Harnesses that take a function or IR through some stages and run or return what comes out."""
