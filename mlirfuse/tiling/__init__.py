"""Turning the tensor ops of a kernel into vector ops on whole tiles: what the passes of `passes.tile` and
`passes.pipelining` share.
"""
