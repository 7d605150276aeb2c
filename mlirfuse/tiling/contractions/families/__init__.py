"""Products on the stages of a ring by an asynchronous instruction family, a family a module.

A module has the family's name, and a `STRATEGY` of the interface `tiling/contractions/family.py`.
"""
