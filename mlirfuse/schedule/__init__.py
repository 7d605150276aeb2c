"""Schedules and layouts as data: what they mean, when they are legal, and how one is chosen.

`parts` holds the parts of a schedule and their checks, `model` what the heuristics know of the machine, and `rows`,
`grid` and `contractions` propose and choose schedules of one family each. Nothing here reads or changes IR.
"""
