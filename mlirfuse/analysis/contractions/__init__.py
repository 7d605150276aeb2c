"""Contractions: their loops, their operands, what follows them, and their sizes for the schedule."""
