"""Contractions as tile programs: the loop along k, its stages of shared memory, and epilogues on tiles."""
