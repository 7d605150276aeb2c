"""Schedules of an instruction family, a family a module: its tiles, their checks, registers and times.

A module has the family's name, and a `STRATEGY` of the interface `contractions/family.py`.
"""
