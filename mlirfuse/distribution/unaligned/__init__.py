"""Accesses to rows that start at any address, by aligned vectors that are shifted in registers or moved."""
