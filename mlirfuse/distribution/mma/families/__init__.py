"""One thread's products by an instruction family, a family a module.

A module has the family's name, and as `STRATEGY` a function of the type `Multiply` of `distribution/mma/contract.py`.
"""
