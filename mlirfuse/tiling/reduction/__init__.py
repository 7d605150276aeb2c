"""Reductions over more than one tile: multi-pass loops over chunks, persistent loops, and their second stage."""
