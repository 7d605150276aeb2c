"""Reductions over more than a tile: loops over chunks and over a grid's tiles, and how they end."""
